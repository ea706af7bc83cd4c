//go:build linux && (amd64 || arm64) && (!cgo || hostlaunch_purego)

package ffi

import "github.com/ebitengine/purego"

func dlopen(path string) (handle uintptr, text string) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, err.Error()
	}
	return handle, ""
}

func dlsym(handle uintptr, name string) uintptr {
	address, err := purego.Dlsym(handle, name)
	if err != nil {
		return 0
	}
	return address
}

func dlclose(handle uintptr) (text string, ok bool) {
	if err := purego.Dlclose(handle); err != nil {
		return err.Error(), false
	}
	return "", true
}
