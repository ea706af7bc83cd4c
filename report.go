package cuda

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// resolve tells how a host function ended: its own OnDone, or else the driver's hooks. It never blocks: reports run on
// goroutines of their own, since resolve may run on a driver's thread.
func (d *Driver) resolve(fn hostfn.Func, failure error) {
	o, _ := fn.More.(*hostOptions)
	if o != nil && o.task != nil {
		if failure != nil { // else it has only begun
			d.inBackground(func() { o.task.end(failure) })
		}
		return
	}
	if failure != nil {
		d.spanOf(fn).fails(failure)
	}
	if o != nil && o.graph != nil {
		o.graph.over()
	}
	if o != nil && o.done != nil {
		d.report("OnDone", fn, func() { o.done(failure) })
		return
	}
	switch e := failure.(type) {
	case *PanicError:
		d.report("OnPanic", fn, func() { d.reportPanic(e) })
	case *LostError:
		d.report("OnLost", fn, func() { d.reportLost(e) })
	case nil:
	default:
		d.report("log", fn, func() { d.logError("cuda: task failed", "func", funcName(fn), "site", siteName(fn.Site), "err", e) })
	}
}

func (d *Driver) reportPanic(e *PanicError) {
	if d.opts.onPanic != nil {
		d.opts.onPanic(e)
		return
	}
	d.opts.log().Error("cuda: host function panicked", "func", e.Name, "site", e.Site, "panic", e.Value, "stack", string(e.Stack))
}

func (d *Driver) reportLost(e *LostError) {
	if d.opts.onLost != nil {
		d.opts.onLost(e)
		return
	}
	d.opts.log().Error("cuda: host function never ran", "func", e.Name, "site", e.Site, "err", e.Err)
}

// report runs a hook of the user's on a goroutine of its own, and contains what it does. about is the host function.
func (d *Driver) report(hook string, about hostfn.Func, fn func()) {
	d.reports.add()
	run := d.hooks.add(hook, about)
	go func() {
		defer d.reports.done()
		defer d.hooks.remove(run)
		defer func() {
			if v := recover(); v != nil {
				d.logError("cuda: "+hook+" panicked", "panic", v, "stack", string(debug.Stack()))
			}
		}()
		callHook(fn)
	}()
}

// logError logs an error. It may run where nothing else of the program would.
func (d *Driver) logError(msg string, args ...any) {
	d.log(slog.LevelError, msg, args...)
}

// log logs, and contains a panic of the program's handler, which is a hook like others: Close would wait for who calls it.
func (d *Driver) log(level slog.Level, msg string, args ...any) {
	defer func() { recover() }()
	callHook(func() { d.opts.log().Log(context.Background(), level, msg, args...) })
}

// goexit is called while a host function's runtime.Goexit unwinds its goroutine. On the software device that goroutine is one
// of its own and can go; on a driver's thread Go is about to end the process, without saying whose fault it was.
func (d *Driver) goexit(e *PanicError) {
	e.Value = ErrGoexit
	if d.drv.GoexitContained() {
		return
	}
	fmt.Fprintf(os.Stderr, "cuda: host function %s, enqueued at %s, called runtime.Goexit (t.FailNow?) on a thread of the driver, which Go cannot stop there; "+
		"pass failures out by a channel instead\n%s", e.Name, e.Site, e.Stack)
	os.Exit(2)
}

// funcName names a host function for reports.
func funcName(fn hostfn.Func) string {
	run := reflect.ValueOf(fn.Run)
	if o, _ := fn.More.(*hostOptions); o != nil {
		if o.name != "" {
			return o.name
		}
		if o.native != 0 {
			return nativeName(o.native)
		}
		if o.task != nil {
			return o.task.name
		}
		if o.callback != nil {
			run = reflect.ValueOf(o.callback)
		}
	}
	if f := runtime.FuncForPC(run.Pointer()); f != nil {
		return f.Name()
	}
	return "(unknown)"
}

// siteName is the file:line of a program counter that native.CallerPC gave.
func siteName(pc uintptr) string {
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if f.File == "" {
		return "(unknown)"
	}
	return fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
}
