//go:build linux && (amd64 || arm64)

package ffi

import "testing"

// TestAccept: 0, and not one of the arguments.
func TestAccept(t *testing.T) {
	c := NewCall()
	defer c.Free()
	for i := range 6 {
		c.Args[i] = ^uintptr(i)
	}
	if r := c.Do(nil, 0, AcceptEntry(), 5); r != 0 {
		t.Errorf("%d, want 0", r)
	}
}
