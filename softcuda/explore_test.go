package softcuda_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/softcuda"
)

// probe stands for a *testing.T that may fail.
type probe struct {
	failed bool
	log    []string
}

func (p *probe) Helper()      {}
func (p *probe) Failed() bool { return p.failed }
func (p *probe) Logf(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *probe) Errorf(format string, args ...any) {
	p.failed = true
	p.Logf(format, args...)
}

func (p *probe) Run(name string, f func(*probe)) bool {
	inner := &probe{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(inner)
	}()
	<-done
	p.failed = p.failed || inner.failed
	p.log = append(p.log, fmt.Sprintf("%s: %v", name, !inner.failed))
	return !inner.failed
}

// fatal is t.FailNow.
func (p *probe) fatal() {
	p.failed = true
	runtime.Goexit()
}

// stagedTwice copies two values to the device by way of one pinned buffer, which it reuses too early unless waits says otherwise.
func stagedTwice(drv *cuda.Driver, waits bool) (first, second byte, err error) {
	dev, err := drv.Device(0)
	if err != nil {
		return 0, 0, err
	}
	s, _ := dev.NewStream()
	staging, _ := dev.AllocPinned(8)
	a, _ := dev.Alloc(8)
	b, _ := dev.Alloc(8)
	out, _ := dev.AllocPinned(16)
	defer func() { staging.Close(); a.Close(); b.Close(); out.Close() }()
	in := staging.Bytes()
	in[0] = 1
	err = cuda.CopyToDevice(s, a, in)
	if waits {
		s.Sync()
	}
	in[0] = 2 // too early, if the copy has not been done
	if err == nil {
		err = cuda.CopyToDevice(s, b, in)
	}
	if err == nil {
		err = cuda.CopyToHost(s, out.Bytes()[:8], a)
	}
	if err == nil {
		err = cuda.CopyToHost(s, out.Bytes()[8:], b)
	}
	if err == nil {
		err = s.Sync()
	}
	return out.Bytes()[0], out.Bytes()[8], err
}

// TestExploreFinds wants the staging buffer that is reused too early to be found, and what the device did to be told.
func TestExploreFinds(t *testing.T) {
	p := &probe{}
	softcuda.Explore(p, 1000, func(p *probe, drv *cuda.Driver) {
		if first, second, err := stagedTwice(drv, false); err != nil || first != 1 || second != 2 {
			p.fatal()
		}
	})
	text := strings.Join(p.log, "\n")
	if !p.failed || !strings.Contains(text, "HOSTLAUNCH_SEED=") || !strings.Contains(text, "copy (explore_test.go:") {
		t.Errorf("failed: %v\n%s", p.failed, text)
	}
	t.Log(text)
}

// TestExploreSound runs the sound form a thousand times, within seconds.
func TestExploreSound(t *testing.T) {
	p, start := &probe{}, time.Now()
	softcuda.Explore(p, 1000, func(p *probe, drv *cuda.Driver) {
		if first, second, err := stagedTwice(drv, true); err != nil || first != 1 || second != 2 {
			t.Errorf("%d, %d, %v", first, second, err)
			p.fatal()
		}
	})
	if p.failed || len(p.log) != 1000 {
		t.Errorf("failed: %v, %d runs", p.failed, len(p.log))
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("a thousand schedules took %v", d)
	}
}

// TestExploreNoSeed: what is no seed is an error, and not all schedules.
func TestExploreNoSeed(t *testing.T) {
	for _, given := range []string{"x", "-1", "0", "1.5"} {
		t.Setenv("HOSTLAUNCH_SEED", given)
		p := &probe{}
		softcuda.Explore(p, 3, func(*probe, *cuda.Driver) { t.Errorf("%q: ran", given) })
		if !p.failed || !strings.Contains(strings.Join(p.log, ""), given) {
			t.Errorf("%q: failed %v, %q", given, p.failed, p.log)
		}
	}
}

// TestExploreOneSeed runs the schedule that the environment names, and shrinks a failure to plain choices where they will do.
func TestExploreOneSeed(t *testing.T) {
	t.Setenv("HOSTLAUNCH_SEED", "77")
	var seeds []string
	p := &probe{}
	softcuda.ExploreWith(p, 1000, softcuda.Explorer{}, func(p *probe, drv *cuda.Driver) {
		stagedTwice(drv, false)
		p.fatal()
	})
	for _, line := range p.log {
		if strings.HasPrefix(line, "seed=") {
			seeds = append(seeds, line)
		}
	}
	if len(seeds) != 1 || seeds[0] != "seed=77: false" {
		t.Errorf("ran %q", seeds)
	}
}
