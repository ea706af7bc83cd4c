//go:build !linux || (!amd64 && !arm64) || !cgo || hostlaunch_purego

package nativetest

import "sync/atomic"

var last, times atomic.Uintptr

func lastNoted() *atomic.Uintptr  { return &last }
func timesNoted() *atomic.Uintptr { return &times }
