//go:build !(linux && (amd64 || arm64))

package libcuda

import (
	"runtime"

	"github.com/hostlaunch/cuda"
)

// Build says how the driver is called: not at all, here.
const Build = "none"

// Open returns an error: the NVIDIA driver is supported on Linux, on amd64 and arm64. Package softcuda works everywhere.
func Open(...cuda.Option) (*cuda.Driver, error) {
	return nil, unsupported()
}

// Probe returns the error of Open, and nothing else.
func Probe() (Found, error) { return Found{}, unsupported() }

func unsupported() error {
	return openError(cuda.ErrNotSupported, nil, "Use softcuda here; a GPU needs linux/amd64 or linux/arm64",
		"the NVIDIA driver is supported on linux/amd64 and linux/arm64, and this is %s/%s; use softcuda", runtime.GOOS, runtime.GOARCH)
}
