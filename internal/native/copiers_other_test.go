//go:build !amd64 && !arm64

package native

func copiers() []copier { return []copier{{"Copy", Copy}} }
