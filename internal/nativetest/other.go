//go:build !linux || (!amd64 && !arm64)

package nativetest

import "unsafe"

var places [functions]byte

func address(which int) uintptr { return uintptr(unsafe.Pointer(&places[which])) }
