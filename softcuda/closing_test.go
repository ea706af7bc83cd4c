package softcuda_test

import (
	stdctx "context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// TestBuilderClosedInHostFunction: CP-10 and HL-06, a builder that is closed inside a host function ends its capture soon afterwards,
// though what is to be closed otherwise rests while something is captured.
func TestBuilderClosedInHostFunction(t *testing.T) {
	d, dev := openSeeded(t, softcuda.Options{})
	defer d.Close()
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.NewGraphBuilder()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Begin(cuda.CaptureRelaxed), cuda.HostLaunch(s, func() { b.Close() }), s.Sync()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Second); d.Stats().Streams > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the builder's stream is there still: %+v", d.Stats())
		}
	}
}

// TestDoneBeforeClose: EV-03, the channel of Event.Done is not closed before the record is done, though that waits in the library and the
// Driver is closed meanwhile.
func TestDoneBeforeClose(t *testing.T) {
	d, dev := openSeeded(t, softcuda.Options{}, cuda.MaxHeldStreams(1))
	s1, err1 := dev.NewStream()
	s2, err2 := dev.NewStream()
	e, err3 := dev.NewEvent()
	open, slow, nothing := make(chan struct{}), make(chan struct{}), func(stdctx.Context) error { return nil }
	_, err4 := cuda.Go(s1, func(stdctx.Context) error { <-open; return nil })
	_, err5 := cuda.Go(s2, nothing) // waits in the library, and the record with it
	if err := errors.Join(err1, err2, err3, err4, err5, cuda.HostLaunch(s2, func() { <-slow }), s2.Record(e)); err != nil {
		t.Fatal(err)
	}
	done, closed := e.Done(), make(chan error)
	go func() { closed <- d.Close() }()
	for _, err := dev.StreamOf(s1); !errors.Is(err, cuda.ErrClosed); _, err = dev.StreamOf(s1) {
		time.Sleep(time.Millisecond)
	}
	close(open)
	select {
	case <-done:
		t.Error("Done before a function that the record is behind")
	case <-time.After(100 * time.Millisecond):
	}
	close(slow)
	<-done
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestGreenContextInTask: TK-03, a green context, which the driver may not make before no stream is held, is refused to a task.
func TestGreenContextInTask(t *testing.T) {
	d, dev := openSeeded(t, softcuda.Options{})
	defer d.Close()
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	all, err := dev.SMResource()
	if err != nil {
		t.Fatal(err)
	}
	task, err := cuda.Go(s, func(stdctx.Context) error {
		_, err := dev.NewGreenContext(all)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Wait(stdctx.Background()); !errors.Is(err, cuda.ErrDeadlock) {
		t.Errorf("in a task: %v; want ErrDeadlock", err)
	}
	if _, err := dev.NewGreenContext(all); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// closingHandler is a log handler that closes the Driver.
type closingHandler struct {
	slog.Handler
	driver *cuda.Driver
	closed chan error
}

func (h *closingHandler) Handle(stdctx.Context, slog.Record) error {
	h.closed <- h.driver.Close()
	return nil
}

// TestCloseInLogger: LI-01, Close in a handler that the library logs to, in the middle of what Close waits for, is ErrDeadlock.
func TestCloseInLogger(t *testing.T) {
	f := new(softcuda.Faults)
	h := &closingHandler{slog.NewTextHandler(io.Discard, nil), nil, make(chan error, 1)}
	d, dev := openSeeded(t, softcuda.Options{Faults: f}, cuda.MaxHeldStreams(1), cuda.Logger(slog.New(h)))
	h.driver = d
	open := make(chan struct{})
	s1, err1 := dev.NewStream()
	s2, err2 := dev.NewStream()
	b, err3 := dev.Alloc(4)
	_, err4 := cuda.Go(s1, func(stdctx.Context) error { <-open; return nil })
	_, err5 := cuda.Go(s2, func(stdctx.Context) error { return nil }) // waits in the library, and what is behind it
	err6 := f.Add(softcuda.Fault{Call: "StreamWriteValue32", Result: cuda.ErrOperatingSystem})
	if err := errors.Join(err1, err2, err3, err4, err5, err6, s2.WriteValue32(b.Word(0), 1)); err != nil {
		t.Fatal(err)
	}
	close(open)
	select {
	case err := <-h.closed:
		if !errors.Is(err, cuda.ErrDeadlock) {
			t.Errorf("%v; want ErrDeadlock", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatalf("Close in the handler hangs\n%s", allGoroutines())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
