package driver

import "unsafe"

// MemoryType says where one end of a copy is.
type MemoryType uint32

// Memory types, by the driver's numbers (CUmemorytype).
const (
	MemoryHost   MemoryType = 1
	MemoryDevice MemoryType = 2
)

// Memcpy3D is a copy of Depth slices of Height rows of Width bytes, laid out as a CUDA_MEMCPY3D: 200 bytes. Arrays are not
// used.
type Memcpy3D struct {
	SrcX, SrcY, SrcZ, SrcLOD uintptr
	SrcType                  MemoryType
	_                        uint32
	SrcHost                  unsafe.Pointer
	SrcDevice                DevicePtr
	SrcArray, _              uintptr
	SrcPitch, SrcHeight      uintptr

	DstX, DstY, DstZ, DstLOD uintptr
	DstType                  MemoryType
	_                        uint32
	DstHost                  unsafe.Pointer
	DstDevice                DevicePtr
	DstArray, _              uintptr
	DstPitch, DstHeight      uintptr

	Width, Height, Depth uintptr
}

// The struct is handed to the driver as it is.
var _ [200 - unsafe.Sizeof(Memcpy3D{})]byte
var _ [unsafe.Sizeof(Memcpy3D{}) - 200]byte
