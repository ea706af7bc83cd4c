// Package libcuda opens the NVIDIA driver, libcuda.so.1, which it looks for when the program runs: one binary works with and
// without a GPU, and across CUDA 12 and 13.
//
// Programs call [Open] and use what it returns; everything else here is behind the seam of package internal/driver. It needs
// Linux on amd64 or arm64, and works with cgo and without.
package libcuda
