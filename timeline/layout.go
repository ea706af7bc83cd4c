package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hostlaunch/cuda"
)

// bar is what is drawn of a span in one place: the operation itself, or the call that queued it.
type bar struct {
	span       int // index in Trace.Spans
	start, end time.Duration
	open       bool // it had not ended when the trace was stopped
}

// lane is what belongs together in the picture: a stream, or the host's calls, or its waits. What overlaps in it is spread over rows, in
// each of which the bars follow each other.
type lane struct {
	group string // the host, or a device
	name  string
	rows  [][]bar
	calls bool // its bars are the calls that queued the spans
}

const hostGroup = "Host"

func deviceGroup(device int) string { return fmt.Sprintf("Device %d", device) }

// lanesOf are t's lanes, the host's first, then those of the devices in their order. A lane without a bar is left out.
func lanesOf(t *cuda.Trace) (lanes []lane) {
	var calls, waits, rest []bar
	streams := make([][]bar, len(t.Streams))
	for i := range t.Spans {
		s := &t.Spans[i]
		if b, ok := callOf(t, i); ok && s.Kind != cuda.TraceSync {
			calls = append(calls, b)
		}
		b, ok := runOf(t, i)
		switch {
		case !ok:
		case s.Kind == cuda.TraceSync:
			waits = append(waits, b)
		case s.Stream == noStream:
			rest = append(rest, b)
		default:
			streams[s.Stream] = append(streams[s.Stream], b)
		}
	}
	add := func(group, name string, bars []bar, calls bool) {
		if len(bars) > 0 {
			lanes = append(lanes, lane{group, name, rowsOf(bars, t.Accuracy), calls})
		}
	}
	add(hostGroup, "calls", calls, true)
	add(hostGroup, "waits", waits, false)
	add(hostGroup, "other work", rest, false)
	for _, i := range streamOrder(t) {
		add(deviceGroup(t.Streams[i].Device), t.Streams[i].Name, streams[i], false)
	}
	return lanes
}

// streamOrder are the indices of t's streams, by device.
func streamOrder(t *cuda.Trace) []int {
	order := make([]int, len(t.Streams))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(t.Streams[a].Device, t.Streams[b].Device) })
	return order
}

// callOf is the call that queued span i.
func callOf(t *cuda.Trace, i int) (bar, bool) {
	s := &t.Spans[i]
	return barOf(t, i, s.Enqueued, s.Returned)
}

// runOf is the operation of span i itself. A wait of the host lasts as long as its call if nothing else is known.
func runOf(t *cuda.Trace, i int) (bar, bool) {
	s := &t.Spans[i]
	if s.Kind == cuda.TraceSync && s.Start == unknown {
		return callOf(t, i)
	}
	return barOf(t, i, s.Start, s.End)
}

func barOf(t *cuda.Trace, i int, start, end time.Duration) (bar, bool) {
	b := bar{span: i, start: start, end: end}
	if end == unknown {
		b.end, b.open = max(t.Duration, start), true
	}
	return b, start != unknown
}

// rowsOf spreads bars over as few rows as they need, earlier and longer ones first. Overlaps of no more than accuracy may be the
// clocks' fault: there the earlier bar is drawn shorter instead.
func rowsOf(bars []bar, accuracy time.Duration) (rows [][]bar) {
	slices.SortStableFunc(bars, func(a, b bar) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	for _, b := range bars {
		i := slices.IndexFunc(rows, func(row []bar) bool { return fits(&row[len(row)-1], b, accuracy) })
		if i < 0 {
			rows = append(rows, nil)
			i = len(rows) - 1
		} else if last := &rows[i][len(rows[i])-1]; last.end > b.start {
			last.end = b.start
		}
		rows[i] = append(rows[i], b)
	}
	return rows
}

// fits reports whether b can follow last in a row. One that begins with last, or is all within the inaccuracy, is no successor.
func fits(last *bar, b bar, accuracy time.Duration) bool {
	return last.end <= b.start || last.end-b.start <= accuracy && last.start < b.start && last.end < b.end
}

// lastMoment is the last nanosecond of b, since the end itself is outside.
func (b bar) lastMoment() time.Duration { return max(b.start, b.end-1) }

// arrival is when what a span waited for let it go on: a wait ends then, and anything else begins.
func arrival(s *cuda.TraceSpan, b bar) time.Duration {
	if s.Kind == cuda.TraceWait || s.Kind == cuda.TraceSync {
		return b.lastMoment()
	}
	return b.start
}
