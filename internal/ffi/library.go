//go:build linux && (amd64 || arm64)

package ffi

import (
	"errors"
	"runtime"
)

// Library is a shared library opened at run time. Its methods are safe for
// concurrent use, except Close.
type Library struct {
	handle uintptr // from dlopen; 0 once closed
}

// Open loads the shared library at path, looked up as dlopen does, with all its
// symbols resolved now and visible to nobody else. The error carries dlerror's
// text.
func Open(path string) (*Library, error) {
	// dlerror's text belongs to the thread that failed.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, text := dlopen(path)
	if handle == 0 {
		return nil, errors.New("dlopen: " + text)
	}
	return &Library{handle}, nil
}

// Symbol returns the address of the library's symbol name, or 0 if the library
// and those that it was linked against lack it.
func (l *Library) Symbol(name string) uintptr {
	if l.handle == 0 {
		return 0
	}
	return dlsym(l.handle, name)
}

// Close drops the library. Addresses of its symbols may be invalid afterwards.
// Closing twice does nothing.
func (l *Library) Close() error {
	if l.handle == 0 {
		return nil
	}
	handle := l.handle
	l.handle = 0
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if text, ok := dlclose(handle); !ok {
		return errors.New("dlclose: " + text)
	}
	return nil
}
