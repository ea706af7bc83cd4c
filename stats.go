package cuda

// Stats counts what a Driver holds at a moment.
type Stats struct {
	Waiting int // host functions and callbacks that have yet to start
	Running int // those that run now

	Tasks int // of Go, that have not ended

	UserObjects int // of the driver, which carry what graphs and executables use
	HostNodes   int // functions of graphs' host nodes, which stay as long as anything can run them

	Streams, Events, Modules int // open objects
	Graphs, GraphExecs       int
	Buffers, PinnedBuffers   int
	DeviceBytes, PinnedBytes int64 // their memory
	Contexts                 int   // made by NewContext and not closed

	ManagedBuffers, GreenContexts int
	PinnedPools                   int
	Copies                        int // to and from ordinary memory, in progress
	ManagedBytes                  int64
}

// Stats counts what d holds now. It needs no driver, so it works in host functions too.
func (d *Driver) Stats() Stats {
	if d == nil {
		return Stats{}
	}
	var st Stats
	begun, running := d.natives.begun() // native functions count below as waiting until they are collected
	for _, c := range d.allContexts() {
		st.Waiting += d.funcs.Pending(&c.funcs) + d.funcs.Pending(&c.callbacks)
		st.Copies += int(c.copies.Load())
		if c.own {
			st.Contexts++
		}
	}
	st.Running = max(d.funcs.Len()-st.Waiting, 0)
	st.Waiting, st.Running = max(st.Waiting-begun, 0), st.Running+running
	st.Tasks = len(d.tasks.unfinished())
	st.HostNodes, st.UserObjects = d.funcs.KeptLen(), d.owners.slots.Len()
	for _, r := range d.resources.all() {
		switch r.kind {
		case "Stream":
			st.Streams++
		case "Event":
			st.Events++
		case "Graph":
			st.Graphs++
		case "GraphExec":
			st.GraphExecs++
		case "Module":
			st.Modules++
		case "Buffer":
			st.Buffers++
			st.DeviceBytes += r.bytes
		case "PinnedBuffer":
			st.PinnedBuffers++
			st.PinnedBytes += r.bytes
		case "PinnedPool":
			st.PinnedPools++
			st.PinnedBytes += r.bytes
		case "ManagedBuffer":
			st.ManagedBuffers++
			st.ManagedBytes += r.bytes
		case "GreenContext":
			st.GreenContexts++
		}
	}
	return st
}

// StagingBytes is the pinned memory that copies of ordinary memory go through now (see CopyToHost): at most 256 MiB for each
// context, which stay for later copies. It needs no driver, so it works in host functions too.
func (d *Driver) StagingBytes() (n int64) {
	if d == nil {
		return 0
	}
	for _, c := range d.allContexts() {
		n += c.stagings.size()
	}
	return n
}
