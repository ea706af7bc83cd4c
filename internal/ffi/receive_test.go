//go:build linux && (amd64 || arm64)

package ffi

import (
	"sync/atomic"
	"testing"
)

// receive registers host and status until the test ends. A nil function fails
// the test when called.
func receive(t testing.TB, host func(uint64), status func(uint64, int32)) (tag uintptr) {
	t.Helper()
	if host == nil {
		host = func(data uint64) { t.Errorf("host function called with %#x", data) }
	}
	if status == nil {
		status = func(data uint64, r int32) { t.Errorf("status function called with %#x, %d", data, r) }
	}
	tag64, stop, err := Receive(host, status)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return uintptr(tag64)
}

func TestReceiveGivesTopByte(t *testing.T) {
	for range 300 {
		tag, stop, err := Receive(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tag == 0 || tag<<8 != 0 {
			t.Fatalf("tag %#x", tag)
		}
		stop()
	}
}

func TestReceiveLimit(t *testing.T) {
	seen := make(map[uint64]bool)
	for range 255 {
		tag, stop, err := Receive(nil, nil)
		if err != nil {
			t.Fatalf("after %d: %v", len(seen), err)
		}
		defer stop()
		seen[tag] = true
	}
	if len(seen) != 255 {
		t.Errorf("%d different tags, want 255", len(seen))
	}
	if _, _, err := Receive(nil, nil); err == nil {
		t.Error("a 256th Receive succeeded")
	}
}

func TestStopIgnoresLateCalls(t *testing.T) {
	var calls atomic.Int64
	tag, stop, err := Receive(func(uint64) { calls.Add(1) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	call(t, "call_threads", HostEntry(), uintptr(tag), 3, 2)
	stop()
	stop()
	call(t, "call_threads", HostEntry(), uintptr(tag), 3, 2)
	call(t, "call_here", HostEntry(), uintptr(tag), 3)
	call(t, "call_status", StatusEntry(), 0, 1, uintptr(tag))
	if n := calls.Load(); n != 6 {
		t.Errorf("%d calls, want the 6 before stop", n)
	}
}

func TestStopLeavesLaterOwnerAlone(t *testing.T) {
	stops := make([]func(), 0, 255)
	for range 255 {
		_, stop, err := Receive(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, stop)
	}
	for _, stop := range stops {
		stop()
	}
	var calls int
	tag := receive(t, func(uint64) { calls++ }, nil)
	for _, stop := range stops {
		stop()
	}
	if call(t, "call_here", HostEntry(), tag, 1); calls != 1 {
		t.Error("a second stop took the tag away from its new owner")
	}
}

func TestUntaggedDataIsIgnored(t *testing.T) {
	receive(t, nil, nil)
	for _, data := range []uintptr{0, 1, 1<<56 - 1} {
		call(t, "call_here", HostEntry(), data, 1)
		call(t, "call_status", StatusEntry(), 0, 1, data)
	}
}

func TestTagsKeepReceiversApart(t *testing.T) {
	var a, b []uint64
	tagA := receive(t, func(data uint64) { a = append(a, data) }, nil)
	tagB := receive(t, func(data uint64) { b = append(b, data) }, nil)
	call(t, "call_here", HostEntry(), tagA|1, 1)
	call(t, "call_threads", HostEntry(), tagB|(1<<56-1), 1, 1)
	call(t, "call_here", HostEntry(), tagA, 1)
	if len(a) != 2 || a[0] != 1 || a[1] != 0 || len(b) != 1 || b[0] != 1<<56-1 {
		t.Errorf("a got %#x, b got %#x", a, b)
	}
}
