//go:build linux && (amd64 || arm64)

package ffi

import "testing"

// BenchmarkDo calls a function of three arguments that does nothing. The C
// cases are floors: the same calls in a loop in C.
func BenchmarkDo(b *testing.B) {
	nop, binding := symbol(b, "nop"), binding(b)
	do := func(b *testing.B, ctx uintptr) {
		b.ReportAllocs()
		for b.Loop() {
			c := NewCall()
			c.Args[0], c.Args[1], c.Args[2] = 1, 2, 3
			c.Do(binding, ctx, nop, 3)
			c.Free()
		}
	}
	b.Run("plain", func(b *testing.B) { do(b, 0) })
	b.Run("unbound", func(b *testing.B) {
		for b.Loop() {
			c := NewCall()
			c.Args[0], c.Args[1], c.Args[2] = 1, 2, 3
			c.DoUnbound(binding, 9, nop, 3)
			c.Free()
		}
	})
	b.Run("bind", func(b *testing.B) { do(b, 9) })
	b.Run("C/plain", func(b *testing.B) { call(b, "loop", nop, uintptr(b.N)) })
	b.Run("C/bind", func(b *testing.B) { call(b, "bound_loop", nop, 9, uintptr(b.N)) })
}

// BenchmarkEntry has C call a host function that does nothing: on a thread of
// C's own, on the thread in Do, and as the only thing a thread does. The C cases
// are floors, with a C function in place of the entry.
func BenchmarkEntry(b *testing.B) {
	hostNop := symbol(b, "host_nop")
	data := receive(b, func(uint64) {}, nil)
	b.Run("thread", func(b *testing.B) { call(b, "call_threads", HostEntry(), data, uintptr(b.N), 1) })
	b.Run("nested", func(b *testing.B) { call(b, "call_here", HostEntry(), data, uintptr(b.N)) })
	b.Run("short", func(b *testing.B) { call(b, "call_short", HostEntry(), data, uintptr(b.N)) })
	b.Run("C/thread", func(b *testing.B) { call(b, "call_threads", hostNop, data, uintptr(b.N), 1) })
	b.Run("C/short", func(b *testing.B) { call(b, "call_short", hostNop, data, uintptr(b.N)) })
}

func BenchmarkInside(b *testing.B) {
	ask := func(b *testing.B) {
		for b.Loop() {
			Inside()
		}
	}
	b.Run("idle", ask)

	entered, release := make(chan struct{}), make(chan struct{})
	data := receive(b, func(uint64) { close(entered); <-release }, nil)
	done := make(chan struct{})
	go func() { defer close(done); call(b, "call_threads", HostEntry(), data, 1, 1) }()
	<-entered
	b.Run("busy", ask)
	close(release)
	<-done
}
