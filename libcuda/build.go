//go:build linux && (amd64 || arm64)

package libcuda

import "github.com/hostlaunch/cuda/internal/ffi"

// Build says how the driver is called: "cgo", or "purego" in a program built without a C compiler (CGO_ENABLED=0).
const Build = ffi.Build
