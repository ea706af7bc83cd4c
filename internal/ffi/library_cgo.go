//go:build linux && (amd64 || arm64) && cgo && !hostlaunch_purego

package ffi

/*
#cgo LDFLAGS: -ldl

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static uintptr_t open_library(const char *path, const char **text) {
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) *text = dlerror();
	return (uintptr_t)handle;
}

static uintptr_t find_symbol(uintptr_t handle, const char *name) {
	return (uintptr_t)dlsym((void *)handle, name);
}

static int close_library(uintptr_t handle, const char **text) {
	int failed = dlclose((void *)handle);
	if (failed) *text = dlerror();
	return failed;
}
*/
import "C"

import "unsafe"

func dlopen(path string) (handle uintptr, text string) {
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	var ctext *C.char
	handle = uintptr(C.open_library(cpath, &ctext))
	return handle, C.GoString(ctext)
}

func dlsym(handle uintptr, name string) uintptr {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return uintptr(C.find_symbol(C.uintptr_t(handle), cname))
}

func dlclose(handle uintptr) (text string, ok bool) {
	var ctext *C.char
	failed := C.close_library(C.uintptr_t(handle), &ctext)
	return C.GoString(ctext), failed == 0
}
