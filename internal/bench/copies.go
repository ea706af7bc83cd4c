package main

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/bench/rig"
)

// copies measures copies between the device and host memory, by size.
type copies struct {
	*bench
	buf    *cuda.Buffer
	slice  []byte // ordinary memory, touched
	pinned []byte
	choice
}

// way is a way to copy: a column of the table.
type way struct {
	title string
	floor string // the floor's name for it, or ""
	copy  func(c *copies, n int) error
}

// direction is a table: the ways, of which the first is the library's own.
type direction struct {
	title string
	fresh bool // what is copied to comes from the system anew, so it is given back each time
	ways  []way
}

var directions = []direction{
	{"device to host memory", false, []way{
		{"Go, a slice", "", func(c *copies, n int) error { return c.down(n, c.slice) }},
		{"Go, Direct", "", func(c *copies, n int) error { return c.down(n, c.slice, cuda.Direct()) }},
		{"Go, pinned", "", func(c *copies, n int) error { return c.down(n, c.pinned) }},
		{"C++, pinned", "down pinned", nil},
		{"C++, pageable", "down pageable", nil},
	}},
	{"device to a fresh slice, with its allocation", true, []way{
		{"Go, a slice", "", func(c *copies, n int) error { return c.down(n, make([]byte, n)) }},
		{"Go, Direct", "", func(c *copies, n int) error { return c.down(n, make([]byte, n), cuda.Direct()) }},
		{"C++, pageable", "down fresh", nil},
	}},
	{"host memory to device", false, []way{
		{"Go, a slice", "", func(c *copies, n int) error { return c.up(n, c.slice) }},
		{"Go, Direct", "", func(c *copies, n int) error { return c.up(n, c.slice, cuda.Direct()) }},
		{"Go, pinned", "", func(c *copies, n int) error { return c.up(n, c.pinned) }},
		{"C++, pinned", "up pinned", nil},
		{"C++, pageable", "up pageable", nil},
	}},
}

// chosen are the ways of d that a person wants measured.
func (d *direction) chosen(which *regexp.Regexp) (ways []way) {
	for _, w := range d.ways {
		if which.MatchString(d.title + ": " + w.title) {
			ways = append(ways, w)
		}
	}
	return ways
}

func (c *copies) down(n int, dst []byte, opts ...cuda.CopyOption) error {
	part, err := c.buf.Slice(0, n)
	if err == nil {
		err = cuda.CopyToHost(c.S, dst[:n], part, opts...)
	}
	if err == nil {
		err = c.S.Sync()
	}
	return err
}

func (c *copies) up(n int, src []byte, opts ...cuda.CopyOption) error {
	part, err := c.buf.Slice(0, n)
	if err == nil {
		err = cuda.CopyToDevice(c.S, part, src[:n], opts...)
	}
	if err == nil {
		err = c.S.Sync()
	}
	return err
}

// newCopies makes memory for copies of up to the largest size. Go's memory is touched by writing it.
func newCopies(b *bench, o choice) (*copies, error) {
	largest := o.largest << 20
	c := &copies{bench: b, slice: make([]byte, largest), choice: o}
	for i := 0; i < largest; i += 4096 {
		c.slice[i] = 1
	}
	p, err := b.Dev.AllocPinned(largest)
	if err != nil {
		return nil, err
	}
	c.pinned = p.Bytes()
	c.buf, err = b.Dev.Alloc(largest)
	return c, err
}

// run prints the tables and the further figures.
func (c *copies) run(ask func(string) (float64, error)) error {
	for _, d := range directions {
		if d.ways = d.chosen(c.ways); len(d.ways) == 0 {
			continue
		}
		fmt.Printf("\n| %s |", d.title)
		for _, w := range d.ways {
			fmt.Printf(" %s |", w.title)
		}
		fmt.Print("\n|---|")
		for range d.ways {
			fmt.Print("---|")
		}
		fmt.Println()
		for n := 64 << 10; n <= len(c.slice); n *= 4 {
			if !c.sizes.MatchString(rig.SizeName(n)) {
				continue
			}
			if err := c.row(d, n, ask); err != nil {
				return err
			}
		}
	}
	return c.more()
}

// row measures the ways in turn, so that they share the machine's ups and downs. The first round warms up.
func (c *copies) row(d direction, n int, ask func(string) (float64, error)) error {
	rounds := min(max(1<<31/n, 5), c.rounds)
	times := make([][]float64, len(d.ways))
	for i := range rounds + 1 {
		for k, w := range d.ways {
			ns, err := c.once(w, n, d.fresh, ask)
			if err != nil {
				return fmt.Errorf("%s, %s, %d bytes: %w", d.title, w.title, n, err)
			}
			if i > 0 {
				times[k] = append(times[k], ns)
			}
		}
	}
	fmt.Printf("| %s |", rig.SizeName(n))
	for _, t := range times {
		ns := rig.Median(t)
		fmt.Printf(" %.1f us, %.2f GB/s |", ns/1e3, float64(n)/ns)
	}
	fmt.Println()
	return nil
}

func (c *copies) once(w way, n int, fresh bool, ask func(string) (float64, error)) (float64, error) {
	if w.copy == nil {
		return ask(fmt.Sprintf("%s %d", w.floor, n))
	}
	start := time.Now()
	err := w.copy(c, n)
	took := time.Since(start)
	if fresh && n >= 1<<20 {
		debug.FreeOSMemory()
	}
	return float64(took.Nanoseconds()), err
}

// more measures what the tables do not show.
func (c *copies) more() error {
	const n = 1 << 30
	if len(c.slice) < n {
		return nil
	}
	for _, f := range []func(int) error{c.returns, c.eight, c.collected} {
		if err := f(n); err != nil {
			return err
		}
	}
	fmt.Printf("pinned memory of the ring: %d MiB\n", c.Dev.Driver().StagingBytes()>>20)
	return nil
}

// returns measures how long the calls take while the stream is busy for a second.
func (c *copies) returns(n int) error {
	part, err := c.buf.Slice(0, n)
	if err != nil {
		return err
	}
	if err := c.S.Launch(c.Spin, cuda.Grid1D(1, 1), uint64(time.Second)); err != nil {
		return err
	}
	start := time.Now()
	if err := cuda.CopyToHost(c.S, c.slice[:n], part); err != nil {
		return err
	}
	down := time.Since(start)
	start = time.Now()
	if err := cuda.CopyToDevice(c.S, part, c.slice[:n]); err != nil {
		return err
	}
	fmt.Printf("\nthe calls for %s return, while the stream is busy, in %v to the host and %v to the device\n", rig.SizeName(n), down, time.Since(start))
	return c.S.Sync()
}

// eight measures copies on eight streams at once, of an eighth each.
func (c *copies) eight(n int) error {
	const streams = 8
	var rates []float64
	var list []*cuda.Stream
	for range streams {
		s, err := c.Dev.NewStream()
		if err != nil {
			return err
		}
		defer s.Close()
		list = append(list, s)
	}
	for i := range 6 {
		start := time.Now()
		for k, s := range list {
			part, err := c.buf.Slice(k*n/streams, n/streams)
			if err == nil {
				err = cuda.CopyToHost(s, c.slice[k*n/streams:][:n/streams], part)
			}
			if err != nil {
				return err
			}
		}
		for _, s := range list {
			if err := s.Sync(); err != nil {
				return err
			}
		}
		if i > 0 {
			rates = append(rates, float64(n)/float64(time.Since(start).Nanoseconds()))
		}
	}
	fmt.Printf("eight streams, %s to the host each: %.2f GB/s together\n", rig.SizeName(n/streams), rig.Median(rates))
	return nil
}

// collected compares the rate while the garbage collector runs all the time, on two processors, with that when it does not.
func (c *copies) collected(n int) error {
	rate := func() (float64, error) {
		var rates []float64
		for range 7 {
			start := time.Now()
			if err := c.down(n, c.slice); err != nil {
				return 0, err
			}
			rates = append(rates, float64(n)/float64(time.Since(start).Nanoseconds()))
		}
		return rig.Median(rates), nil
	}
	quiet, err := rate()
	if err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	two, err := rate()
	if err != nil {
		return err
	}
	stop, done := make(chan struct{}), sync.WaitGroup{}
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	busy, err := rate()
	close(stop)
	done.Wait()
	fmt.Printf("%s to the host: %.2f GB/s; with GOMAXPROCS=2 %.2f; and with the garbage collector running %.2f\n", rig.SizeName(n), quiet, two, busy)
	return err
}
