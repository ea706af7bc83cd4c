package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/timeline"
)

func writeJSON(w io.Writer, t *cuda.Trace) error { return json.NewEncoder(w).Encode(t) }

// mostTotals bounds how many operations are listed.
const mostTotals = 40

// printSummary prints what t adds up to.
func printSummary(w io.Writer, t *cuda.Trace) error {
	s, err := timeline.Summarize(t)
	if err != nil {
		return err
	}
	p := &page{w: w}
	p.printf("%d operations in %v, on the %s driver (CUDA %s)\n", len(t.Spans), rounded(t.Duration.Nanoseconds()), orDash(t.Driver), orDash(t.Version))
	if t.Dropped > 0 {
		p.printf("%d more were left out, since the trace was full\n", t.Dropped)
	}
	if len(s.Streams) > 0 {
		p.printf("\nStreams\n")
		p.table(streamRows(t, s.Streams))
	}
	if len(s.Operations) > 0 {
		p.printf("\nOperations\n")
		p.table(operationRows(s.Operations))
	}
	return p.err
}

func streamRows(t *cuda.Trace, totals []timeline.StreamTotal) [][]string {
	rows := [][]string{{"device", "stream", "operations", "busy", "of the time"}}
	for _, s := range totals {
		stream := t.Streams[s.Stream]
		rows = append(rows, []string{
			fmt.Sprint(stream.Device), stream.Name, fmt.Sprint(s.Count), fmt.Sprint(rounded(s.Busy.Nanoseconds())), fmt.Sprintf("%.1f %%", 100*s.Share),
		})
	}
	return rows
}

func operationRows(totals []timeline.OperationTotal) [][]string {
	rows := [][]string{{"kind", "name", "count", "total", "mean", "longest", "rate"}}
	for i, o := range totals {
		if i == mostTotals {
			return append(rows, []string{fmt.Sprintf("and %d more", len(totals)-i)})
		}
		row := []string{string(o.Kind), o.Name, fmt.Sprint(o.Count), "-", "-", "-", ""}
		if o.Ran > 0 {
			row = append(row[:3], fmt.Sprint(rounded(o.Total.Nanoseconds())), fmt.Sprint(rounded(o.Mean.Nanoseconds())), fmt.Sprint(rounded(o.Max.Nanoseconds())), "")
		}
		if o.Rate > 0 {
			row[6] = fmt.Sprintf("%.3g GB/s", o.Rate)
		}
		rows = append(rows, row)
	}
	return rows
}
