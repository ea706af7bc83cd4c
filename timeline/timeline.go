// Package timeline draws what a cuda.Tracer has seen: as a page to look at (WriteHTML), as events for Perfetto and Chrome
// (WriteChrome), as a picture of what waits for what (WriteDOT, which package picture makes an SVG of), and as totals (Summarize).
// It only reads the Trace; its functions may be called at the same time, also for one Trace.
package timeline

import (
	"fmt"

	"github.com/hostlaunch/cuda"
)

// check is an error if t cannot be drawn: it is nil, or says something that no trace says. What it refers to beyond that may be
// missing, since a limited trace leaves spans out.
func check(t *cuda.Trace) error {
	if t == nil {
		return fmt.Errorf("timeline: t is nil")
	}
	if t.Duration < 0 || t.Accuracy < 0 || t.Dropped < 0 {
		return fmt.Errorf("timeline: the trace's duration %v, accuracy %v or number of dropped operations %d is negative",
			t.Duration, t.Accuracy, t.Dropped)
	}
	for i, s := range t.Streams {
		if s.Device < 0 {
			return fmt.Errorf("timeline: stream %d is of device %d", i, s.Device)
		}
	}
	seen := make(map[int]bool, len(t.Spans))
	for i := range t.Spans {
		if err := checkSpan(t, &t.Spans[i], seen); err != nil {
			return fmt.Errorf("timeline: span %d of %d: %w", i+1, len(t.Spans), err)
		}
	}
	return nil
}

func checkSpan(t *cuda.Trace, s *cuda.TraceSpan, seen map[int]bool) error {
	switch {
	case s.ID < 1:
		return fmt.Errorf("its id is %d; ids begin at 1", s.ID)
	case seen[s.ID]:
		return fmt.Errorf("its id, %d, is another span's too", s.ID)
	case s.Kind == "":
		return fmt.Errorf("it has no kind")
	case s.Stream < noStream || s.Stream >= len(t.Streams):
		return fmt.Errorf("it is of stream %d, and the trace has %d", s.Stream, len(t.Streams))
	case s.Enqueued < unknown || s.Returned < unknown || s.Start < unknown || s.End < unknown:
		return fmt.Errorf("a time of it is negative: %d, %d, %d, %d ns", s.Enqueued, s.Returned, s.Start, s.End)
	case s.Returned != unknown && s.Returned < s.Enqueued:
		return fmt.Errorf("its call returned at %v, before it began at %v", s.Returned, s.Enqueued)
	case s.End != unknown && s.End < s.Start:
		return fmt.Errorf("it ended at %v, before it began at %v", s.End, s.Start)
	}
	seen[s.ID] = true
	return nil
}

const (
	unknown  = -1 // of a time
	noStream = -1 // of a span that belongs to no stream, such as the wait for an event
)

// spanName is what a span is called where there is room for one name.
func spanName(s *cuda.TraceSpan) string {
	for _, name := range []string{s.Name, s.Op} {
		if name != "" {
			return name
		}
	}
	return string(s.Kind)
}

// rate is how fast a span moved its bytes, in GB/s; 0 if that is not known.
func rate(s *cuda.TraceSpan) float64 {
	if s.Bytes <= 0 || s.Start == unknown || s.End <= s.Start {
		return 0
	}
	return float64(s.Bytes) / float64(s.End-s.Start) // bytes per nanosecond
}
