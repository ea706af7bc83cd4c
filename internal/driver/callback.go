package driver

// Callbacks is the older form of host functions, with status, of the stream management section.
type Callbacks interface {
	// StreamAddCallback queues a call of Upcalls.Callback with data. flags must be 0.
	StreamAddCallback(ctx Context, s Stream, data uint64, flags uint32) Result
}
