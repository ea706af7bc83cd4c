package timeline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/hostlaunch/cuda"
)

// WriteChrome writes t in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open: the host and each device
// are processes, streams are threads, with further threads for what overlaps. Arrows lead from a call to what it queued, and
// from what a span waited for to the span. It is an error if t is nil or contradicts itself, or if w fails.
func WriteChrome(w io.Writer, t *cuda.Trace) error {
	if err := check(t); err != nil {
		return err
	}
	c := &chromeWriter{w: bufio.NewWriter(w), t: t, runs: map[int]place{}, calls: map[int]place{}}
	c.begin()
	c.lanes(lanesOf(t))
	c.flows()
	c.raw("\n]}\n")
	if err := c.w.Flush(); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	return nil
}

// chromeEvent is an event of the Trace Event Format. Times are in microseconds.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Time  float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    int            `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// place is where a bar was written.
type place struct {
	bar
	pid, tid int
}

// chromeWriter writes one event after the other; its writer keeps the first error.
type chromeWriter struct {
	w           *bufio.Writer
	t           *cuda.Trace
	events      int
	runs, calls map[int]place // by span
	flow        int           // the latest arrow's id
}

func (c *chromeWriter) raw(s string) { c.w.WriteString(s) }

func (c *chromeWriter) event(e chromeEvent) {
	if c.events++; c.events > 1 {
		c.raw(",\n")
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // names, numbers and lists of them can be written
	}
	c.w.Write(text)
}

func (c *chromeWriter) begin() {
	about, err := json.Marshal(map[string]any{
		"driver": c.t.Driver, "version": c.t.Version, "began": c.t.Began, "accuracy_us": micros(c.t.Accuracy), "dropped": c.t.Dropped,
	})
	if err != nil { // a time beyond the year 9999
		about = []byte("{}")
	}
	c.raw("{\"displayTimeUnit\":\"ns\",\"otherData\":" + string(about) + ",\"traceEvents\":[\n")
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// lanes writes each group of lanes as a process, and each row as a thread of it.
func (c *chromeWriter) lanes(lanes []lane) {
	group, pid, tid := "", 0, 0
	for _, l := range lanes {
		if l.group != group {
			group, tid = l.group, 0
			pid++
			c.metadata("process", pid, 0, group, pid)
		}
		for i, row := range l.rows {
			tid++
			name := l.name
			if i > 0 {
				name = fmt.Sprintf("%s (%d)", l.name, i+1)
			}
			c.metadata("thread", pid, tid, name, tid)
			for _, b := range row {
				c.bar(place{b, pid, tid}, l.calls)
			}
		}
	}
}

// metadata names a process or thread, and says where it is shown.
func (c *chromeWriter) metadata(what string, pid, tid int, name string, order int) {
	c.event(chromeEvent{Name: what + "_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
	c.event(chromeEvent{Name: what + "_sort_index", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"sort_index": order}})
}

func (c *chromeWriter) bar(p place, call bool) {
	s := &c.t.Spans[p.span]
	took := micros(p.end - p.start)
	e := chromeEvent{Name: spanName(s), Cat: string(s.Kind), Phase: "X", Time: micros(p.start), Dur: &took, PID: p.pid, TID: p.tid}
	if call {
		c.calls[p.span] = p
		e.Cat, e.Args = "call", c.callArgs(s)
		if s.Op != "" {
			e.Name = s.Op
		}
	} else {
		c.runs[p.span] = p
		e.Args = c.runArgs(s, p.bar)
	}
	c.event(e)
}

func (c *chromeWriter) callArgs(s *cuda.TraceSpan) map[string]any {
	args := map[string]any{"id": s.ID, "kind": s.Kind, "name": spanName(s)}
	if s.Stream != noStream {
		args["stream"] = c.t.Streams[s.Stream].Name
	}
	addArg(args, "site", s.Site)
	addArg(args, "error", s.Error)
	return args
}

func (c *chromeWriter) runArgs(s *cuda.TraceSpan, b bar) map[string]any {
	args := map[string]any{"id": s.ID, "clock": "host"}
	if s.Device {
		args["clock"] = "device"
	}
	addArg(args, "op", s.Op)
	addArg(args, "site", s.Site)
	addArg(args, "bytes", s.Bytes)
	addArg(args, "GB/s", rate(s))
	addArg(args, "parent", s.Parent)
	addArg(args, "error", s.Error)
	addArg(args, "unfinished", b.open)
	if len(s.After) > 0 {
		args["after"] = s.After
	}
	return args
}

// addArg adds what is not its type's zero value.
func addArg[T comparable](args map[string]any, name string, value T) {
	var zero T
	if value != zero {
		args[name] = value
	}
}

// flows writes the arrows.
func (c *chromeWriter) flows() {
	index := make(map[int]int, len(c.t.Spans)) // by id
	for i := range c.t.Spans {
		index[c.t.Spans[i].ID] = i
	}
	for i := range c.t.Spans {
		to, ok := c.runs[i]
		if !ok {
			continue
		}
		if from, ok := c.calls[i]; ok {
			c.arrow("queued", from, from.start, to, to.start)
		}
		for _, id := range c.t.Spans[i].After {
			if from, ok := c.runs[index[id]]; ok && c.t.Spans[from.span].ID == id {
				c.arrow("after", from, from.lastMoment(), to, arrival(&c.t.Spans[i], to.bar))
			}
		}
	}
}

// arrow leads from a moment in one bar to a moment in another. Where the clocks' inaccuracy turns that around it begins earlier, or is
// left out.
func (c *chromeWriter) arrow(name string, from place, at time.Duration, to place, until time.Duration) {
	if from.start > until {
		return
	}
	c.flow++
	e := chromeEvent{Name: name, Cat: name, ID: c.flow, Phase: "s", Time: micros(min(at, until)), PID: from.pid, TID: from.tid}
	c.event(e)
	e.Phase, e.Bind, e.Time, e.PID, e.TID = "f", "e", micros(until), to.pid, to.tid
	c.event(e)
}
