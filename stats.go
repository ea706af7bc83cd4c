package cuda

// Stats counts what a Driver holds at a moment.
type Stats struct {
	Waiting int // host functions and callbacks that have yet to start
	Running int // those that run now

	Tasks int // of Go, that have not ended

	HostNodes int // functions of graphs' host nodes, which stay as long as anything can run them

	Streams, Events, Modules int // open objects
	Graphs, GraphExecs       int
	Buffers, PinnedBuffers   int
	DeviceBytes, PinnedBytes int64 // their memory
	Contexts                 int   // made by NewContext and not closed

	ManagedBuffers, GreenContexts int
	ManagedBytes                  int64
}

// Stats counts what d holds now. It needs no driver, so it works in host functions too.
func (d *Driver) Stats() Stats {
	if d == nil {
		return Stats{}
	}
	var st Stats
	for _, c := range d.allContexts() {
		st.Waiting += d.funcs.Pending(&c.funcs) + d.funcs.Pending(&c.callbacks)
		if c.own {
			st.Contexts++
		}
	}
	st.Running = max(d.funcs.Len()-st.Waiting, 0)
	st.Tasks = len(d.tasks.all())
	st.HostNodes = d.funcs.KeptLen()
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
		case "ManagedBuffer":
			st.ManagedBuffers++
			st.ManagedBytes += r.bytes
		case "GreenContext":
			st.GreenContexts++
		}
	}
	return st
}
