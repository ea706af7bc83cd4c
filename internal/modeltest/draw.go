package modeltest

import (
	"github.com/hostlaunch/cuda/internal/model"
	"github.com/hostlaunch/cuda/internal/source"
)

// weights say how often each kind of operation is drawn, in relation to each other.
var weights = [model.Kinds]int{
	model.Kernel: 18, model.Host: 10, model.Gate: 3, model.Open: 5, model.Delay: 6,
	model.Record: 12, model.WaitEvent: 14, model.WaitStream: 5,
	model.QueryStream: 5, model.QueryEvent: 5, model.SyncStream: 2, model.SyncEvent: 2, model.AwaitStream: 1, model.AwaitEvent: 2,
	model.CloseStream: 2, model.CloseEvent: 1,
	model.Begin: 12, model.End: 9, model.Launch: 24, model.Within: 20,
}

// captures reports whether an operation has to do with captures and graphs.
func captures(k model.Kind) bool { return k >= model.Begin }

// draw makes the program of a seed.
func draw(seed uint64) *model.Program {
	r := source.Seed(seed, 3)
	d := newDrawing(r)
	for range 8 + r.IntN(40) {
		d.op()
	}
	return d.p
}

// drawBytes makes the program that bytes say, as long as they are.
func drawBytes(data []byte) *model.Program {
	const longest = 120
	b := source.NewBytes(data)
	d := newDrawing(b)
	for n := 0; n < longest && !b.Over(); n++ {
		d.op()
	}
	return d.p
}

// newDrawing begins a program: it has its streams and events.
func newDrawing(r source.Numbers) *drawing {
	p := &model.Program{Events: 1 + r.IntN(4)}
	for range 2 + r.IntN(4) {
		p.Streams = append(p.Streams, model.Blocking+model.Stream(r.IntN(2)))
	}
	if r.IntN(3) > 0 {
		p.Streams[0] = model.Legacy
	}
	return &drawing{r: r, p: p, m: model.New(p), captures: r.IntN(5) < 2}
}

// drawing is a program in the making.
type drawing struct {
	r     source.Numbers
	p     *model.Program
	m     *model.State
	marks int
	shut  []int

	captures bool // this one has some
	graphs   int
}

// op adds an operation, if one is found that is allowed here.
func (d *drawing) op() {
	const mostShut = 2
	for range 20 {
		o := d.guess()
		switch {
		case o.Marks() && d.marks == model.Most, o.Kind == model.Gate && len(d.shut) == mostShut, o.Kind == model.Open && len(d.shut) == 0:
			continue
		case o.Marks():
			o.N = d.marks
		case captures(o.Kind) && !d.captures, o.Kind == model.Launch && d.graphs == 0:
			continue
		case o.Kind == model.Begin:
			o.N %= 3
		case o.Kind == model.End, o.Kind == model.Within:
			if o.S = d.find(d.m.Begun); o.S < 0 {
				continue
			}
			if o.N = d.graphs; o.Kind == model.End {
				d.join(o.S)
			}
		case o.Kind == model.Launch:
			o.N %= d.graphs
		case o.Kind == model.Open:
			o.N = d.shut[d.r.IntN(len(d.shut))]
		}
		want := d.m.Next(o)
		if want == model.Hangs || want == model.Mistaken {
			continue
		}
		if want.Refuses() && o.Kind != model.End && d.r.IntN(6) > 0 {
			continue // or few captures would come to a good end
		}
		want = want.Least() // as if nothing were known of it
		d.m.Apply(o, want)
		d.add(o, want)
		return
	}
}

func (d *drawing) add(o model.Op, want model.Answer) {
	d.p.Ops = append(d.p.Ops, o)
	if o.Marks() {
		d.marks++
	}
	if o.Kind == model.End {
		d.graphs++
	}
	switch {
	case o.Kind == model.Gate && want == model.OK:
		d.shut = append(d.shut, o.N)
	case o.Kind == model.Open:
		rest := d.shut[:0]
		for _, n := range d.shut {
			if n != o.N {
				rest = append(rest, n)
			}
		}
		d.shut = rest
	}
}

// join has the forks of the capture on stream s be joined, most of the time, so that it can end well.
func (d *drawing) join(s int) {
	for _, f := range d.m.Forks(s) {
		o := model.Op{Kind: model.WaitStream, S: s, O: f}
		if d.r.IntN(8) > 0 && d.m.Next(o) == model.OK {
			d.m.Apply(o, model.OK)
			d.add(o, model.OK)
		}
	}
}

func (d *drawing) guess() model.Op {
	o := model.Op{S: d.r.IntN(len(d.p.Streams)), O: d.r.IntN(len(d.p.Streams)), E: d.r.IntN(d.p.Events), N: 5 + d.r.IntN(60)}
	total := 0
	for _, w := range weights {
		total += w
	}
	n := d.r.IntN(total)
	for kind, w := range weights {
		if n -= w; n < 0 {
			o.Kind = model.Kind(kind)
			break
		}
	}
	d.lean(&o)
	return o
}

// lean has o have to do with a stream that captures, if there is one, more often than by chance.
func (d *drawing) lean(o *model.Op) {
	s := d.find(d.m.Captures)
	switch n := d.r.IntN(10); {
	case s < 0 || captures(o.Kind):
	case n < 3:
		o.S = s
	case n < 6:
		o.Kind, o.S = model.Kernel, s
	case n < 8:
		o.Kind, o.O = model.WaitStream, s // a fork or a join
	}
}

// find is a stream of which is is true, or -1.
func (d *drawing) find(is func(int) bool) int {
	first := d.r.IntN(len(d.p.Streams))
	for i := range d.p.Streams {
		if s := (first + i) % len(d.p.Streams); is(s) {
			return s
		}
	}
	return -1
}
