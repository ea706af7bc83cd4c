package cuda

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// TestWatchdogLimit: a host function is told of when it is known to have run for the limit, once, and not before.
func TestWatchdogLimit(t *testing.T) {
	var log bytes.Buffer
	const limit = time.Hour
	d := &Driver{opts: options{logger: slog.New(slog.NewTextHandler(&log, nil))}}
	h := d.funcs.Add(hostfn.Func{Run: func() {}, Group: new(hostfn.Group)})
	if _, ok := d.funcs.Start(h); !ok {
		t.Fatal("not started")
	}
	for _, c := range []struct {
		ran   time.Duration
		lines int
	}{{limit * 9 / 10, 0}, {limit + time.Second, 1}} {
		d.dog.seen = map[hostfn.Handle]time.Time{h: time.Now().Add(-c.ran)}
		d.dog.look(d, limit)
		if n := bytes.Count(log.Bytes(), []byte("for long")); n != c.lines {
			t.Errorf("after %v of %v: told of %d times, want %d", c.ran, limit, n, c.lines)
		}
	}
	if d.dog.look(d, limit); bytes.Count(log.Bytes(), []byte("for long")) != 1 {
		t.Error("told of again")
	}
}
