//go:build linux && (amd64 || arm64) && cgo && !hostlaunch_purego

package ffi

/*
#include <stdint.h>

static int accept_all(void) { return 0; }
static uintptr_t accept_entry(void) { return (uintptr_t)accept_all; }
*/
import "C"

func acceptEntry() uintptr { return uintptr(C.accept_entry()) }
