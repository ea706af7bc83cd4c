package timeline_test

import (
	"math"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/timeline"
)

// TestSummarize: times add up, overlaps count once, waits do not make a stream busy.
func TestSummarize(t *testing.T) {
	trace := sample()
	trace.Spans = append(trace.Spans, cuda.TraceSpan{ID: 15, Kind: cuda.TraceKernel, Name: "produce", Enqueued: -1, Returned: -1, Start: 300 * us, End: 320 * us})
	s, err := timeline.Summarize(trace)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		stream, count int
		busy, share   float64 // in microseconds
	}{
		{0, 5, 80 + 51 - 1 + 300 + 20, 0.45}, // the kernel and the function overlap by 1
		{2, 3, 200 + 8, 0.208},               // not the wait
		{1, 4, 250 + 290 + 1, 0.541},         // the node is within the graph
	} {
		got := s.Streams[i]
		if got.Stream != want.stream || got.Count != want.count || got.Busy.Seconds()*1e6 != want.busy || math.Abs(got.Share-want.share) > 1e-9 {
			t.Errorf("stream %+v, want %+v", got, want)
		}
	}
	find := func(kind cuda.TraceKind, name string) (o timeline.OperationTotal) {
		for _, o := range s.Operations {
			if o.Kind == kind && o.Name == name {
				return o
			}
		}
		return o
	}
	if o := find(cuda.TraceKernel, "produce"); o.Count != 2 || o.Ran != 2 || o.Total != 100*us || o.Mean != 50*us || o.Max != 80*us {
		t.Errorf("%+v", o)
	}
	if o := find(cuda.TraceCopy, "to host"); o.Bytes != 4_000_000 || o.Rate != 20 {
		t.Errorf("%+v", o)
	}
	if o := find(cuda.TraceKernel, "endless"); o.Count != 1 || o.Ran != 0 || o.Total != 0 || o.Mean != 0 {
		t.Errorf("%+v", o)
	}
	if o := find(cuda.TraceRecord, "Stream.Record"); o.Count != 1 {
		t.Errorf("%+v", s.Operations)
	}
	if len(s.Streams) != 3 || s.Operations[0].Name != "rewrite" {
		t.Errorf("%+v", s)
	}
}
