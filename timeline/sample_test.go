package timeline_test

import (
	"time"

	"github.com/hostlaunch/cuda"
)

const us = time.Microsecond

// sample is a trace with all that is drawn: two devices, a host and a device clock, a graph with a node in it, a task that queues,
// a wait across streams, what overlaps, what failed, what did not end and what did not begin.
func sample() *cuda.Trace {
	return &cuda.Trace{
		Driver: "software", Version: "13.0", Began: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Duration: 1000 * us, Accuracy: 2 * us,
		Streams: []cuda.TraceStream{{Device: 0, Name: "stream 1"}, {Device: 1, Name: "stream 3"}, {Device: 0, Name: "stream 2"}, {Device: 1, Name: "unused"}},
		Spans: []cuda.TraceSpan{
			{ID: 1, Kind: cuda.TraceKernel, Name: "produce", Op: "Stream.Launch", Site: "main.go:10", Stream: 0, Enqueued: 10 * us, Returned: 14 * us, Start: 20 * us, End: 100 * us, Device: true},
			{ID: 2, Kind: cuda.TraceHost, Name: "check <all> & \"more\"", Op: "HostLaunch", Site: "main.go:11", Stream: 0, Enqueued: 15 * us, Returned: 17 * us, Start: 99 * us, End: 150 * us},
			{ID: 3, Kind: cuda.TraceRecord, Name: "", Op: "Stream.Record", Site: "main.go:12", Stream: 0, Enqueued: 18 * us, Returned: 19 * us, Start: 150 * us, End: 150 * us, Device: true},
			{ID: 4, Kind: cuda.TraceWait, Op: "Stream.WaitEvent", Site: "main.go:13", Stream: 2, Enqueued: 20 * us, Returned: 21 * us, Start: 25 * us, End: 151 * us, After: []int{3}},
			{ID: 5, Kind: cuda.TraceCopy, Name: "to host", Op: "CopyToHost", Site: "main.go:14", Stream: 2, Bytes: 4_000_000, Enqueued: 22 * us, Returned: 30 * us, Start: 151 * us, End: 351 * us, Device: true},
			{ID: 6, Kind: cuda.TraceGraph, Name: "batch", Op: "GraphExec.Launch", Site: "main.go:15", Stream: 1, Enqueued: 31 * us, Returned: 40 * us, Start: 50 * us, End: 300 * us, Device: true},
			{ID: 7, Kind: cuda.TraceNode, Name: "replayed", Op: "HostLaunch", Site: "main.go:16", Stream: 1, Enqueued: -1, Returned: -1, Start: 100 * us, End: 120 * us, Parent: 6},
			{ID: 8, Kind: cuda.TraceTask, Name: "rewrite", Op: "Go", Site: "main.go:17", Stream: 1, Enqueued: 41 * us, Returned: 43 * us, Start: 310 * us, End: 600 * us},
			{ID: 9, Kind: cuda.TraceMemset, Name: "memset", Op: "Stream.Memset", Site: "main.go:18", Stream: 2, Bytes: 1000, Enqueued: 320 * us, Returned: 321 * us, Start: 352 * us, End: 360 * us, Device: true, Parent: 8},
			{ID: 10, Kind: cuda.TraceKernel, Name: "endless", Op: "Stream.Launch", Site: "main.go:19", Stream: 0, Enqueued: 44 * us, Returned: 45 * us, Start: 700 * us, End: -1, Device: true, Error: "device lost"},
			{ID: 11, Kind: cuda.TraceHost, Name: "never", Op: "HostLaunch", Site: "", Stream: 0, Enqueued: 46 * us, Returned: 47 * us, Start: -1, End: -1},
			{ID: 12, Kind: cuda.TraceSync, Name: "Stream.Sync", Op: "Stream.Sync", Site: "main.go:20", Stream: 0, Enqueued: 48 * us, Returned: -1, Start: -1, End: -1},
			{ID: 13, Kind: cuda.TraceSync, Name: "Event.Wait", Op: "Event.Wait", Site: "main.go:21", Stream: -1, Enqueued: 60 * us, Returned: 160 * us, Start: 60 * us, End: 160 * us},
			{ID: 14, Kind: cuda.TraceNative, Name: "memmove", Op: "HostCopy", Site: "main.go:22", Stream: 1, Bytes: 500, Enqueued: 610 * us, Returned: 611 * us, Start: 620 * us, End: 621 * us, Device: true, After: []int{5, 99}},
		},
	}
}
