// Package model is a reference of CUDA's stream order: what a program of stream operations promises, worked out without
// running any of it. It says which of the program's marks come before which, and what each call may answer.
//
// Where the documentation leaves something open, or only one driver is known to do it, the model asks for nothing: an order is
// only ever demanded where it is certain, and an answer only where no other is possible. So a difference between the model
// and a driver is a fault of one of them.
//
// A program is made by one goroutine, in its order; each capture has a further goroutine, which begins and ends it. To add an
// operation, give it a Kind, say in apply what it orders, and teach package modeltest to draw and to run it.
package model

import (
	"fmt"
	"strings"
)

// Most is how many marks a program may have, so that a set of them is a word.
const Most = 64

// Kind says what an operation does.
type Kind uint8

// Operations. S is the stream it is called on, O another stream, E an event, N a number.
const (
	Kernel      Kind = iota // queue a kernel on S that leaves mark N
	Host                    // queue a host function on S that leaves mark N
	Gate                    // queue a host function on S that leaves mark N, and then waits for Open N
	Open                    // let gate N go on
	Delay                   // queue a kernel on S that takes N microseconds
	Record                  // record E in S
	WaitEvent               // have S wait for E
	WaitStream              // have S wait for O
	QueryStream             // ask whether S is done
	QueryEvent              // ask whether E is complete
	SyncStream              // wait for S
	SyncEvent               // wait for E
	AwaitStream             // wait for S with a context
	AwaitEvent              // wait for E with a context
	CloseStream             // close S
	CloseEvent              // close E
	Begin                   // begin a capture on S, in mode N, in a goroutine of its own
	End                     // end the capture that began on S, and make graph N of it ready to run
	Launch                  // launch graph N on S, if there is one
	Within                  // ask whether O is done, in the goroutine that captures on S
	kinds
)

// format says how an operation is written: %[1]d is S, %[2]d O, %[3]d E, %[4]d N.
var format = [kinds]string{
	Kernel: "s%[1]d.Kernel(%[4]d)", Host: "s%[1]d.Host(%[4]d)", Gate: "s%[1]d.Gate(%[4]d)", Open: "Open(%[4]d)",
	Delay: "s%[1]d.Delay(%[4]d us)", Record: "s%[1]d.Record(e%[3]d)", WaitEvent: "s%[1]d.WaitEvent(e%[3]d)",
	WaitStream: "s%[1]d.WaitStream(s%[2]d)", QueryStream: "s%[1]d.Query()", QueryEvent: "e%[3]d.Query()",
	SyncStream: "s%[1]d.Sync()", SyncEvent: "e%[3]d.Sync()", AwaitStream: "s%[1]d.Wait(ctx)", AwaitEvent: "e%[3]d.Wait(ctx)",
	CloseStream: "s%[1]d.Close()", CloseEvent: "e%[3]d.Close()",
	Begin: "s%[1]d.Begin(mode %[4]d)", End: "g%[4]d = s%[1]d.End()", Launch: "g%[4]d.Launch(s%[1]d)",
	Within: "where s%[1]d captures: s%[2]d.Query()",
}

// Kinds is how many kinds there are.
const Kinds = int(kinds)

// Op is an operation of a program.
type Op struct {
	Kind    Kind
	S, O, E int
	N       int
}

// String writes o as a call.
func (o Op) String() string { return fmt.Sprintf(format[o.Kind]+"%.[5]s", o.S, o.O, o.E, o.N, "") }

// Marks reports whether o leaves a mark.
func (o Op) Marks() bool { return o.Kind == Kernel || o.Kind == Host || o.Kind == Gate }

// UsesStream reports whether o is a call of stream S, or with it.
func (o Op) UsesStream() bool { return strings.Contains(format[o.Kind], "s%[1]d") }

// UsesOther reports whether o is a call with stream O.
func (o Op) UsesOther() bool { return strings.Contains(format[o.Kind], "s%[2]d") }

// UsesEvent reports whether o is a call of event E, or with it.
func (o Op) UsesEvent() bool { return strings.Contains(format[o.Kind], "e%[3]d") }

// Stream is what kind of stream a program has.
type Stream uint8

// Kinds of streams. A program has one legacy stream at most.
const (
	Legacy Stream = iota
	Blocking
	NonBlocking
)

// String names s.
func (s Stream) String() string { return [...]string{"legacy", "blocking", "non-blocking"}[s] }

// Program is a list of operations. Marks are numbered from 0, each used once. Gates that are still shut at its end are opened.
type Program struct {
	Streams []Stream
	Events  int
	Ops     []Op
}

// String writes p as a list of calls.
func (p *Program) String() string {
	var b strings.Builder
	for i, s := range p.Streams {
		fmt.Fprintf(&b, "s%d is %v; ", i, s)
	}
	fmt.Fprintf(&b, "%d events\n", p.Events)
	for i, o := range p.Ops {
		fmt.Fprintf(&b, "%3d  %v\n", i, o)
	}
	return b.String()
}
