package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/hostlaunch/cuda"
)

// Summary is what a Trace adds up to.
type Summary struct {
	Streams    []StreamTotal    // in the order of the picture
	Operations []OperationTotal // longest first
}

// StreamTotal says how busy a stream was.
type StreamTotal struct {
	Stream int // in Trace.Streams
	Count  int // operations that began

	// Busy is the time in which at least one operation was running on the stream, other than records and waits. An operation that had
	// not ended counts until the trace was stopped.
	Busy  time.Duration
	Share float64 // Busy of the trace's Duration, from 0 to 1
}

// OperationTotal adds up the spans of one kind and name.
type OperationTotal struct {
	Kind  cuda.TraceKind
	Name  string
	Count int           // all of them
	Ran   int           // those of which it is known when they began and ended
	Total time.Duration // of those that ran
	Mean  time.Duration // 0 if none ran
	Max   time.Duration //
	Bytes int64         // moved by those that ran
	Rate  float64       // Bytes in Total, in GB/s; 0 if no bytes were moved
}

// Summarize adds up what is in t. It is an error if t is nil or contradicts itself.
func Summarize(t *cuda.Trace) (*Summary, error) {
	if err := check(t); err != nil {
		return nil, err
	}
	return summarize(t), nil
}

func summarize(t *cuda.Trace) *Summary {
	s := &Summary{Streams: streamTotals(t)}
	type key struct {
		kind cuda.TraceKind
		name string
	}
	found := map[key]int{}
	for i := range t.Spans {
		span := &t.Spans[i]
		k := key{span.Kind, spanName(span)}
		at, ok := found[k]
		if !ok {
			at = len(s.Operations)
			found[k] = at
			s.Operations = append(s.Operations, OperationTotal{Kind: k.kind, Name: k.name})
		}
		b, began := runOf(t, i)
		s.Operations[at].add(span, b, began && !b.open)
	}
	for i := range s.Operations {
		s.Operations[i].finish()
	}
	slices.SortStableFunc(s.Operations, func(a, b OperationTotal) int { return cmp.Compare(b.Total, a.Total) })
	return s
}

func (o *OperationTotal) add(s *cuda.TraceSpan, b bar, ran bool) {
	o.Count++
	if !ran {
		return
	}
	took := b.end - b.start
	o.Ran++
	o.Total += took
	o.Max = max(o.Max, took)
	o.Bytes += s.Bytes
}

func (o *OperationTotal) finish() {
	if o.Ran > 0 {
		o.Mean = o.Total / time.Duration(o.Ran)
	}
	if o.Total > 0 {
		o.Rate = float64(o.Bytes) / float64(o.Total)
	}
}

// streamTotals are the totals of the streams that did something.
func streamTotals(t *cuda.Trace) (totals []StreamTotal) {
	bars, counts := make([][]bar, len(t.Streams)), make([]int, len(t.Streams))
	for i := range t.Spans {
		s := &t.Spans[i]
		b, ok := runOf(t, i)
		if !ok || s.Stream == noStream || s.Kind == cuda.TraceSync {
			continue
		}
		counts[s.Stream]++
		if s.Kind != cuda.TraceRecord && s.Kind != cuda.TraceWait {
			bars[s.Stream] = append(bars[s.Stream], b)
		}
	}
	for _, i := range streamOrder(t) {
		if counts[i] == 0 {
			continue
		}
		total := StreamTotal{Stream: i, Count: counts[i], Busy: covered(bars[i])}
		if t.Duration > 0 {
			total.Share = min(1, float64(total.Busy)/float64(t.Duration))
		}
		totals = append(totals, total)
	}
	return totals
}

// covered is the time that bars cover, overlaps counted once.
func covered(bars []bar) (sum time.Duration) {
	slices.SortFunc(bars, func(a, b bar) int { return cmp.Compare(a.start, b.start) })
	var until time.Duration
	for _, b := range bars {
		if b.end > until {
			sum += b.end - max(b.start, until)
			until = b.end
		}
	}
	return sum
}
