package cuda

import "time"

// Trace is what a Driver did while it was traced: a Tracer's Stop makes one. Package timeline draws it. As JSON it can be kept and read
// back. All times are since Began, on the host's clock.
type Trace struct {
	Driver   string        `json:"driver"`   // Driver.Name
	Version  string        `json:"version"`  // of the driver
	Began    time.Time     `json:"began"`    // when tracing began
	Duration time.Duration `json:"duration"` // until Stop, and the end of what it waited for
	Accuracy time.Duration `json:"accuracy"` // device times are on the host's clock within this; 0 if there are none
	Dropped  int           `json:"dropped"`  // operations that were not noted, since the limit was reached
	Streams  []TraceStream `json:"streams"`
	Spans    []TraceSpan   `json:"spans"` // in the order in which they were queued
}

// TraceStream is a stream of a Trace.
type TraceStream struct {
	Device int    `json:"device"`
	Name   string `json:"name"` // such as "stream 12", by Stream.ID, or "legacy default stream"
}

// TraceKind says what a TraceSpan is.
type TraceKind string

// Kinds of spans.
const (
	TraceKernel   TraceKind = "kernel"
	TraceCopy     TraceKind = "copy"
	TraceMemset   TraceKind = "memset"
	TraceHost     TraceKind = "host function" // of HostLaunch
	TraceNative   TraceKind = "native"        // a host function of HostLaunchNative, or a HostCopy
	TraceCallback TraceKind = "callback"
	TraceTask     TraceKind = "task"
	TraceGraph    TraceKind = "graph" // a launch of a graph
	TraceNode     TraceKind = "node"  // a host function or task of a graph's node, in one launch
	TraceMemOp    TraceKind = "memory operation"
	TraceRecord   TraceKind = "record"
	TraceWait     TraceKind = "wait" // of a stream for another one's work
	TraceSync     TraceKind = "sync" // a goroutine that waits: Sync, Wait
)

// TraceSpan is one operation of a Trace.
type TraceSpan struct {
	ID     int       `json:"id"`     // from 1; other spans refer to it
	Kind   TraceKind `json:"kind"`   //
	Name   string    `json:"name"`   // of the kernel or function, or else what was called
	Op     string    `json:"op"`     // the call, such as "Stream.Launch"
	Site   string    `json:"site"`   // file:line of the call; "" if unknown
	Stream int       `json:"stream"` // in Trace.Streams
	Bytes  int64     `json:"bytes,omitempty"`

	// Enqueued and Returned are when the call began and returned; a node has none (-1).
	Enqueued time.Duration `json:"enqueued"`
	Returned time.Duration `json:"returned"`

	// Start and End are when the operation itself ran. -1: it had not begun, or not ended, when the trace was stopped, or it is not known
	// since the driver gave no times (Device false then).
	Start  time.Duration `json:"start"`
	End    time.Duration `json:"end"`
	Device bool          `json:"device"` // Start and End were taken on the device's clock, and fitted to the host's

	After  []int  `json:"after,omitempty"`  // spans of other streams that this one waited for
	Parent int    `json:"parent,omitempty"` // the graph's launch that a node belongs to, the task that queued this; 0: none
	Error  string `json:"error,omitempty"`  // how it failed
}
