package hostfn

import "runtime/debug"

// Outcome is how a function ended that did not simply return.
type Outcome struct {
	Panic  any // the recovered value
	Stack  []byte
	Goexit bool // it called runtime.Goexit (or t.FailNow), which ends the goroutine it ran on
}

// Call runs fn and reports to ended if it did not return: a panic is recovered, a Goexit is seen on its way out.
func Call(fn func(), ended func(Outcome)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			ended(Outcome{Panic: v, Stack: debug.Stack()})
			return
		}
		ended(Outcome{Goexit: true, Stack: debug.Stack()})
	}()
	fn()
	returned = true
}
