package modeltest

import (
	"errors"
	"testing"
	"time"

	"github.com/hostlaunch/cuda"
)

// FuzzConfig is what a driver package's fuzz target hands Fuzz.
type FuzzConfig struct {
	// Open opens a driver for one program. The choice, which is any number, may pick what kind of driver it is. wrong is what is to be asked
	// when the program is over and the driver closed; it may be nil.
	Open func(choice byte) (drv *cuda.Driver, wrong func() error)
	PTX  []byte // internal/testkernels
}

// Fuzz makes programs of bytes. Each is run on a driver of its own, compared with the model, and leaves nothing behind.
func Fuzz(f *testing.F, cfg FuzzConfig) {
	f.Fuzz(func(t *testing.T, data []byte) {
		choice := byte(0)
		if len(data) > 0 {
			choice, data = data[0], data[1:]
		}
		p := drawBytes(data)
		if !p.Valid() {
			t.Fatalf("the program may hang:\n%v", p)
		}
		drv, wrong := cfg.Open(choice)
		r, err := newRig(drv, cfg.PTX)
		if err != nil {
			t.Fatal(err)
		}
		before := drv.Stats()
		if differs := r.run(p); differs != "" {
			t.Errorf("%s\n%v", differs, p)
		}
		if now := settled(drv, before); now != before {
			t.Errorf("left behind: %+v, before: %+v\n%v", now, before, p)
		}
		if err := errors.Join(r.mem.Close(), drv.Close()); err != nil {
			t.Errorf("closing the driver: %v\n%v", err, p)
		}
		if wrong == nil {
			return
		}
		if err := wrong(); err != nil {
			t.Errorf("%v\n%v", err, p)
		}
	})
}

// settled is what drv holds as soon as that is want, or else after a while: what a program has dropped goes a little later.
func settled(drv *cuda.Driver, want cuda.Stats) cuda.Stats {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Microsecond) {
		if drv.Stats() == want {
			break
		}
	}
	return drv.Stats()
}
