package cuda

import (
	"fmt"
	"sync"

	"github.com/hostlaunch/cuda/internal/hostfn"
	"github.com/hostlaunch/cuda/internal/native"
)

// hookList knows the OnDone, OnPanic and OnLost that run now, so that a shutdown that waits for one can name it. It holds
// nothing of the function that the hook is told about: what that captured may go meanwhile (CONTRACT HL-08).
type hookList struct {
	mu      sync.Mutex
	running map[*hookRun]struct{}
}

// hookRun is a hook that runs, or is about to.
type hookRun struct {
	hook string // "OnDone", ...
	name string // of the host function
	site uintptr
}

func (l *hookList) add(hook string, fn hostfn.Func) *hookRun {
	r := &hookRun{hook, funcName(fn), fn.Site}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = map[*hookRun]struct{}{}
	}
	l.running[r] = struct{}{}
	return r
}

func (l *hookList) remove(r *hookRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, r)
}

// describe says of at most n hooks that they run.
func (l *hookList) describe(n int) (parts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.running {
		if len(parts) == n {
			return append(parts, fmt.Sprintf("%d more hooks", len(l.running)-n))
		}
		parts = append(parts, fmt.Sprintf("%s of host function %s, enqueued at %s, which runs", r.hook, r.name, siteName(r.site)))
	}
	return parts
}

// callHook calls a hook. Every one is called from here, so that the place it returns to tells.
//
//go:noinline
func callHook(fn func()) { fn() }

// inCallHook is the address that a hook returns to.
var inCallHook = func() (pc uintptr) {
	callHook(func() { pc = native.CallerPC() })
	return pc
}()

// inReport reports whether the calling goroutine is inside a hook.
func inReport() bool { return native.OnStack(inCallHook) }
