package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/hostfn"
)

// Code is a CUDA result code as an error: what errors.Is compares. The driver's codes keep their numbers; the codes of this
// library, for what the driver does not know of, are negative.
type Code int32

// Codes of this library.
const (
	// ErrClosed: the stream, buffer or other object was closed before, or its Driver was.
	ErrClosed Code = -1 - iota
	// ErrDeviceLost: a context has failed for good, and with it the use of that device in this process (CONTRACT HL-17).
	// Nothing but a new process helps. The driver's own code is in the same error.
	ErrDeviceLost
	// ErrDeadlock: the call would have waited for itself.
	ErrDeadlock
	// ErrCapturing: the stream is capturing a graph.
	ErrCapturing
	// ErrNotBuilding: the graph builder is closed, has not begun or has ended.
	ErrNotBuilding
	// ErrTimingDisabled: the event was made without WithTiming (CONTRACT EV-02).
	ErrTimingDisabled
	// ErrNotRecorded: the event has never been recorded (CONTRACT EV-02).
	ErrNotRecorded
	// ErrHostAccess: the host may not touch this managed memory now (CONTRACT HL-19).
	ErrHostAccess
	// ErrContextEnded: the context.Context that was given to the call ended first; its error is in the same error.
	ErrContextEnded
	// ErrTaskFailed: a task that was to stop its stream when it fails has failed (StopOnError). Its error is in the same error.
	ErrTaskFailed
)

var ownCodes = map[Code]string{
	ErrClosed:         "closed",
	ErrDeviceLost:     "device lost",
	ErrDeadlock:       "deadlock",
	ErrCapturing:      "stream is capturing",
	ErrNotBuilding:    "graph builder is not building",
	ErrTimingDisabled: "event without timing",
	ErrNotRecorded:    "event never recorded",
	ErrHostAccess:     "no host access now",
	ErrContextEnded:   "the call's context ended",
	ErrTaskFailed:     "a task failed",
}

// Error gives the driver's name and number of c, or what c means if it is this library's own.
func (c Code) Error() string {
	if s, ok := ownCodes[c]; ok {
		return s
	}
	if name := driver.Result(c).Name(); name != "" {
		return fmt.Sprintf("%s (%d)", name, int32(c))
	}
	return fmt.Sprintf("CUDA error %d", int32(c))
}

// Error is what a call of this library fails with.
type Error struct {
	Op     string // the call, as in "Stream.Sync"
	Code   Code   // what went wrong
	Reason string // which argument or circumstance, and the way out; may be empty
	also   Code   // a second code that errors.Is finds; 0: none
	cause  error  // what the program's context ended with, the error of the task that stopped the stream, or a *DeadlockError; nil: none
}

// Error says which call failed, why, and what to do instead.
func (e *Error) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("cuda: %s: %v", e.Op, e.Code)
	}
	return fmt.Sprintf("cuda: %s: %s: %v", e.Op, e.Reason, e.Code)
}

// Is reports whether target is one of e's codes.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && (c == e.Code || e.also != 0 && c == e.also)
}

// Unwrap gives what is behind e: the error of the program's own context, if that ended, that of the task that stopped the stream, or of a
// deadlock of tasks the *DeadlockError. Without any it gives e's code.
func (e *Error) Unwrap() error {
	if e.cause != nil {
		return e.cause
	}
	return e.Code
}

// NewError makes the error of a call. It is for the driver packages of this module.
func NewError(op string, r driver.Result, reason string) *Error {
	return &Error{Op: op, Code: Code(r), Reason: reason}
}

// endedError is the error of a call whose ctx ended before what it waited for.
func endedError(op string, ctx context.Context, stillWaiting string) error {
	reason := ctx.Err().Error()
	if stillWaiting != "" {
		reason += "; still waiting for " + stillWaiting
	}
	return &Error{Op: op, Code: ErrContextEnded, Reason: reason, cause: ctx.Err()}
}

func failf(op string, c Code, format string, args ...any) error {
	return &Error{Op: op, Code: c, Reason: fmt.Sprintf(format, args...)}
}

// kindOf is what messages call fn.
func kindOf(fn hostfn.Func) string {
	switch o, _ := fn.More.(*hostOptions); {
	case o == nil:
	case o.task != nil || o.graph != nil:
		return "task"
	case o.callback != nil:
		return "callback"
	}
	return hostFunction
}

const hostFunction = "host function"

// LostError says that a host function never ran, and why. It goes to the function's OnDone, or else to the driver's OnLost.
type LostError struct {
	Name string // the function: as Name gave it, or as the program calls it
	Site string // file:line of the enqueue
	Err  error

	kind string // what it is, if no host function
}

// Error names the function, where it was enqueued, and why it never ran.
func (e *LostError) Error() string {
	return fmt.Sprintf("cuda: %s %s, enqueued at %s, never ran: %v", cmp.Or(e.kind, hostFunction), e.Name, e.Site, e.Err)
}

// Unwrap gives the reason.
func (e *LostError) Unwrap() error { return e.Err }

// PanicError is a panic of a host function, recovered (CONTRACT HL-09). It goes to the function's OnDone, or else to the
// driver's OnPanic.
type PanicError struct {
	Name  string // the function: as Name gave it, or as the program calls it
	Site  string // file:line of the enqueue
	Value any    // what it panicked with; ErrGoexit if it called runtime.Goexit
	Stack []byte // of the panic

	kind string // what it is, if no host function
}

// ErrGoexit is the Value of a PanicError for a function that called runtime.Goexit, as t.FailNow does, on the software
// device. On a thread of the NVIDIA driver nothing can contain that: there the process ends.
var ErrGoexit = errors.New("runtime.Goexit called in a host function")

// Error names the function, where it was enqueued, and the panic's value.
func (e *PanicError) Error() string {
	return fmt.Sprintf("cuda: %s %s, enqueued at %s, panicked: %v", cmp.Or(e.kind, hostFunction), e.Name, e.Site, e.Value)
}

// Unwrap gives the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
