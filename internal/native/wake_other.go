//go:build !linux || (!amd64 && !arm64)

package native

// Wake does nothing: nobody sleeps at a board here.
func Wake(*Board, int) {}
