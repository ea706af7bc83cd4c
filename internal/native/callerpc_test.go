package native_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda/internal/native"
)

// pair is the same question answered twice, for the function that asks.
type pair struct{ fast, runtime uintptr }

func (p pair) check(t *testing.T) {
	t.Helper()
	if p.fast != p.runtime || p.fast == 0 {
		t.Errorf("CallerPC = %#x in %s, runtime.Callers gives %#x in %s",
			p.fast, function(p.fast), p.runtime, function(p.runtime))
	}
}

func function(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return frame.Function
}

//go:noinline
func ask() pair {
	return pair{native.CallerPC(), callers()}
}

// callers is runtime.Callers(2) as if called in the function that calls this.
//
//go:noinline
func callers() uintptr {
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:])
	return pcs[0]
}

//go:noinline
func askWithLargeFrame(n int) pair {
	var frame [2000]int
	frame[n] = n
	defer func() { recover() }()
	return pair{native.CallerPC(), callers() + uintptr(frame[n]-n)}
}

//go:noinline
func askGeneric[T any](v T) (T, pair) {
	return v, pair{native.CallerPC(), callers()}
}

type asker struct{ p pair }

//go:noinline
func (a *asker) ask() { a.p = pair{native.CallerPC(), callers()} }

var answers = make(chan pair)

//go:noinline
func askOver() { answers <- pair{native.CallerPC(), callers()} }

func inlined() pair { return ask() }

//go:noinline
func outOfLine() pair { return ask() }

//go:noinline
func deep(n int) (p pair) {
	if n == 0 {
		return ask()
	}
	p = deep(n - 1)
	return p
}

func TestCallerPC(t *testing.T) {
	shapes := map[string]func() pair{
		"direct":         func() pair { return ask() },
		"inlined caller": func() pair { return inlined() },
		"noinline":       outOfLine,
		"function value": ask,
		"large frame":    func() pair { return askWithLargeFrame(7) },
		"generic":        func() pair { _, p := askGeneric("x"); return p },
		"generic array":  func() pair { _, p := askGeneric([3]int{}); return p },
		"method":         func() pair { var a asker; a.ask(); return a.p },
		"interface":      func() pair { var a asker; interface{ ask() }(&a).ask(); return a.p },
		"deferred":       func() (p pair) { defer func() { p = ask() }(); return },
		"panicking":      whilePanicking,
		"deep":           func() pair { return deep(5000) },
		"in a goroutine's first function": func() pair {
			c := make(chan pair)
			go func() { c <- ask() }()
			return <-c
		},
		"as a goroutine's first function": func() pair {
			go askOver()
			return <-answers
		},
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) { shape().check(t) })
	}
}

// A method value is called through a wrapper, which runtime.Callers skips.
func TestCallerPCIsInWrapper(t *testing.T) {
	var a asker
	f := a.ask
	f()
	if name := function(a.p.fast); !strings.HasSuffix(name, ".ask-fm") && a.p.fast != a.p.runtime {
		t.Errorf("CallerPC is in %s", name)
	}
}

func whilePanicking() (p pair) {
	defer func() {
		recover()
		p = ask()
	}()
	panic("asked for")
}

var sink uintptr

//go:noinline
func askFast() { sink = native.CallerPC() }

//go:noinline
func askRuntime() { sink = callers() }

func BenchmarkCallerPC(b *testing.B) {
	b.Run("fast", func(b *testing.B) {
		for b.Loop() {
			askFast()
		}
	})
	b.Run("runtime", func(b *testing.B) {
		for b.Loop() {
			askRuntime()
		}
	})
}
