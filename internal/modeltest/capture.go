package modeltest

import (
	"fmt"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/model"
)

// capture is a capture that goes on in a goroutine of its own, which runs what it is told to.
type capture struct {
	builder *cuda.GraphBuilder
	calls   chan func()
	done    chan struct{}
	graph   *cuda.Graph
	err     error
}

// refusals are the answers of calls that captures do not allow.
var refusals = map[error]model.Answer{
	cuda.ErrCapturing: model.Capturing, cuda.ErrCaptureUnsupported: model.Unsupported, cuda.ErrCaptureInvalidated: model.Invalidated,
	cuda.ErrCaptureUnjoined: model.Unjoined, cuda.ErrCaptureMerge: model.Merge, cuda.ErrCaptureIsolation: model.Isolation,
	cuda.ErrCaptureImplicit: model.Implicit, cuda.ErrCapturedEvent: model.CapturedEvent, cuda.ErrInvalidValue: model.InvalidValue,
}

// queue is what work for stream i is queued on: the graph builder, where a capture has begun on it.
func (u *run) queue(i int) cuda.Queue {
	if c := u.captures[i]; c != nil {
		return c.builder
	}
	return u.streams[i]
}

// doCapture calls o, which has to do with captures.
func (u *run) doCapture(o model.Op) (model.Answer, error) {
	switch o.Kind {
	case model.Begin:
		return answer(u.begin(o.S, cuda.CaptureMode(o.N)))
	case model.End:
		return u.instantiate(o)
	case model.Launch:
		if x := u.graphs[o.N]; x != nil {
			return answer(x.Launch(u.streams[o.S]))
		}
		return model.NoGraph, nil
	case model.Within:
		return queried(u.captures[o.S].within(u.streams[o.O].Query))
	}
	return 0, fmt.Errorf("package modeltest does not know how to run it")
}

// begin begins a capture on stream i.
func (u *run) begin(i int, mode cuda.CaptureMode) error {
	c := &capture{calls: make(chan func()), done: make(chan struct{})}
	begun := make(chan struct{})
	go func() {
		defer close(c.done)
		c.graph, c.err = cuda.Capture(u.streams[i], mode, func(b *cuda.GraphBuilder) error {
			c.builder = b
			close(begun)
			for call := range c.calls {
				call()
			}
			return nil
		})
	}()
	select {
	case <-begun:
		u.captures[i] = c
		return nil
	case <-c.done:
		return c.err
	}
}

// within has the capture's goroutine call ask.
func (c *capture) within(ask func() (bool, error)) (done bool, err error) {
	asked := make(chan struct{})
	c.calls <- func() {
		done, err = ask()
		close(asked)
	}
	<-asked
	return done, err
}

// end ends the capture that began on stream i.
func (u *run) end(i int) (*cuda.Graph, error) {
	c := u.captures[i]
	delete(u.captures, i)
	close(c.calls)
	<-c.done
	return c.graph, c.err
}

// instantiate ends a capture, and makes its graph ready to run if the model knows what is in it.
func (u *run) instantiate(o model.Op) (model.Answer, error) {
	known := u.m.Next(o) == model.OK
	g, err := u.end(o.S)
	if err != nil {
		return answer(err)
	}
	return answer(u.relaxed(func() error {
		defer g.Close()
		if !known {
			return nil
		}
		x, err := g.Instantiate()
		if err == nil {
			u.graphs[o.N] = x
		}
		return err
	}))
}

// relaxed runs fn, which makes or frees something: whether that is safe while something is captured is not what is tested.
func (u *run) relaxed(fn func() error) error {
	if len(u.captures) == 0 {
		return fn()
	}
	return u.dev.Driver().WithCaptureMode(cuda.CaptureRelaxed, fn)
}

// endCaptures ends the captures that are left when the program has come to its end.
func (u *run) endCaptures() (wrong string) {
	for i := range u.streams {
		if u.captures[i] == nil {
			continue
		}
		o := model.Op{Kind: model.End, S: i, N: -1 - i}
		got, err := u.instantiate(o)
		if err != nil {
			return fmt.Sprintf("at the end, %v: %v", o, err)
		}
		if wrong := u.m.Apply(o, got); wrong != "" {
			return fmt.Sprintf("at the end, %v: %s", o, wrong)
		}
	}
	return ""
}
