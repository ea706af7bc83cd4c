//go:build !linux || (!amd64 && !arm64)

package native

// partRunners are the ways to take a turn.
func partRunners() map[string]func(*Work) { return map[string]func(*Work){"Go": RunParts} }
