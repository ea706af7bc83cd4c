package cudatest

// Family is a part of the contract.
type Family struct {
	ID, Title string
	Rules     []Rule
}

// Rule is one promise. Its text is the contract: docs/contract.md is generated from here, and a case that fails prints it.
type Rule struct{ ID, Text string }

// Rules are the texts by id.
var Rules = func() map[string]string {
	m := map[string]string{}
	for _, f := range Contract {
		for _, r := range f.Rules {
			m[r.ID] = r.Text
		}
	}
	return m
}()

// Contract is the whole contract. [sw] and [hw] mark rules that only the software device or only hardware can be made to
// show. Rules are added as they are found, and never weakened to make a driver pass: where hardware disagrees, the rule says
// what it did.
var Contract = []Family{
	{"HL", "Host functions", []Rule{
		{"HL-01", `A host function runs after all work queued before it on its stream has finished, and work queued after it waits until it returns.`},
		{"HL-02", `The call returns at enqueue, not at completion; Sync, or an event recorded after it, observes completion.`},
		{"HL-03", `It runs exactly once per enqueue; from a graph, exactly once per launch of the graph.`},
		{"HL-04", `It runs on a thread of the driver, never on the caller's goroutine; the caller may be blocked in Sync meanwhile, with GOMAXPROCS=1 too.`},
		{"HL-05", `Functions of independent streams have no order between them and may run one at a time. The suite must pass under either.`},
		{"HL-06", `From inside a host function, every call that would reach the driver returns ErrNotPermitted at once and names the function; what needs no driver ('PinnedBuffer.Bytes', names, ids but those of default streams) works; Close is accepted and carried out later on an ordinary goroutine. Other goroutines at the same moment are unaffected.`},
		{"HL-07", `A host function that waits for its own stream, or for work that is not already ordered before it, is reported: the software device returns ErrDeadlock naming both; on hardware the watchdog reports the function, its enqueue site and its running time.`},
		{"HL-08", `The function, and all it captured, stays alive until it has run, whatever the caller drops or the GC does; it is released afterwards on an ordinary goroutine, so a finalizer or cleanup may call CUDA.`},
		{"HL-09", `A panic is recovered, reported once (value, stack, function's name, enqueue site) through OnDone as a *PanicError, or else the driver's OnPanic hook, default slog; the stream goes on, later functions run, the process lives. A panicking hook is contained as well. runtime.Goexit (t.FailNow) on a driver thread cannot be stopped by Go: on hardware the process ends with a message naming the function; the documentation says to use a task or a channel in tests.`},
		{"HL-10", `Nil target, closed stream or nil function: an error, nothing queued, nothing retained.`},
		{"HL-11", `Native data: a pointer arrives as the same address and stays the caller's; bytes are copied before the call returns, lie at a multiple of 16 and live until the function has returned; no bytes arrive as NULL. The Go runtime is not entered for compiled code. A pointer that itself wraps a Go function (a cgo export, a purego callback) is allowed and does enter Go; it counts as inside (HL-06; on the NVIDIA driver for up to 64 threads at a time), and a panic there is fatal, as documented.`},
		{"HL-12", `A compiled function of the wrong kind (null address) is refused. A Go closure takes no native data: the API cannot express it.`},
		{"HL-13", `HostLaunch on a Stream that is capturing is refused with ErrCapturing and points to the GraphBuilder; the capture stays valid.`},
		{"HL-14", `HostLaunch on a GraphBuilder that is closed, not yet begun or ended: ErrNotBuilding.`},
		{"HL-15", `HostLaunch on a building GraphBuilder adds a host node (see GR).`},
		{"HL-16", `If the driver refuses the enqueue, the function is released, never runs, and the error says so.`},
		{"HL-17", `If the context fails before it runs, the function never runs and is released; its OnDone (else OnLost), or its Task, gets the device's error within one second even if no goroutine calls the library. On hardware: an illegal address queued before it (the driver drops it silently). After that the process cannot use the device again (measured: reset succeeds, retain still answers 700): every call says ErrDeviceLost and to restart. Such cases run in child processes.`},
		{"HL-18", `Starting a host function makes writes of everything ordered before it visible to it, including work of other streams joined by events.`},
		{"HL-19", `For managed memory the stream counts as idle while the function runs: it may touch memory attached to that stream, and memory attached globally if work on other streams is ordered behind it by an event. Completion alone does not make the stream active; it stays idle across consecutive functions with no device work between, so a signal from the last one can stand in for Sync. A stream is active from the queuing of device work until the program has seen that completed; on a software device without concurrent managed access 'ManagedBuffer.HostAccess' tells, and names the stream [sw].`},
		{"HL-20", `Adding device work to any stream does not make that stream active until the host functions before it have run.`},
		{"HL-21", `Sync mode: Blocking and Spin keep every rule above; an unknown mode is ErrInvalidValue; Spin works on drivers without it. Emulated Spin runs on a Go thread (HL-04 is waived); where concurrent managed access is 0, Spin falls back to Blocking, so that HL-19 and HL-20 hold.`},
		{"HL-22", `Works on created, borrowed, legacy default and per-thread default streams; two devices with two streams each keep their functions apart.`},
		{"HL-23", `Destroying the stream, or dropping every reference to it, with functions queued loses none of them.`},
		{"HL-24", `100,000 functions queued behind a blocked one all run, in order; memory per waiting function is bounded and returns afterwards. (Hardware: 20,000 were measured to fit; find the driver's own limit and what happens at it.)`},
		{"HL-25", `Enqueueing from 64 goroutines on one stream is safe; each goroutine's own functions keep their order.`},
		{"HL-26", `A function may enqueue nothing itself (HL-06) but may start a goroutine that does.`},
		{"HL-27", `OnDone(func(error)) is called exactly once per enqueue on an ordinary goroutine where CUDA is allowed: nil after the function ran, *PanicError, or why it will never run. It is where a buffer goes back to its pool; it covers failure too. In a graph it is called per launch.`},
	}},
	{"CB", "Callbacks with status (the driver's older form)", []Rule{
		{"CB-01", `Runs once per call, after earlier work, before later work, like HL-01.`},
		{"CB-02", `Gets nil, or the device error if the context has failed: then it still runs, once, with that error.`},
		{"CB-04", `HL-04 to HL-10, HL-18 to HL-20 and HL-23 hold for callbacks as for host functions.`},
		{"CB-03", `Not capturable: on a capturing stream ErrCaptureUnsupported, and the capture is handled as the driver does. Flags other than 0 are ErrInvalidValue.`},
		{"CB-05", `If the driver does not run the callbacks of a context that has failed within a second, the library runs them with the error, in the order they were added, on ordinary goroutines: still exactly once.`},
	}},
	{"ST", "Streams", []Rule{
		{"ST-01", `Create with flags Default (blocking) or NonBlocking; unknown flags ErrInvalidValue. Flags, priority, unique id, device and context read back.`},
		{"ST-02", `Lower number is higher priority; the legal range can be asked for. The public constructor refuses a priority out of range; a Clamp option does what the driver does. 0 is the default; priority concerns kernels, not copies, and is a hint, never order; what reads back is the (clamped) value in force.`},
		{"ST-03", `A blocking stream and the legacy default stream order each other's work; a non-blocking stream is ordered with neither. A query or sync of the legacy stream includes the work of all blocking streams. A record on a blocking stream waits for the legacy stream's work, but a query or sync of that stream need not wait for the record (both seen on an H200).`},
		{"ST-04", `Query: done, not done (no error), or the context's error. Sync waits. Wait(ctx) returns when ctx ends; the stream's work goes on.`},
		{"ST-05", `Close with work queued returns at once; the work completes. Any later use is ErrClosed. Close twice is fine.`},
		{"ST-06", `WaitEvent: later work waits for what the event's latest record captured; a later re-record changes nothing; an event never recorded counts as complete. Works across devices.`},
		{"ST-07", `Attributes: get, set, copy between streams of one context (different contexts: ErrInvalidContext or what the driver says); a set affects later work only.`},
		{"ST-08", `Special handles: legacy (1) and per-thread (2); 0 is legacy. Queries on them use the calling context and cache nothing. Capture may not begin on the legacy stream.`},
		{"ST-09", `Context(): the creating context; for a green stream the context equivalent of its green context. Contexts(): (primary, green) for a green stream, (context, none) for a regular one. On a special handle the calling context answers: ErrInvalidContext if there is none, and ErrInvalidHandle for the per-thread handle under a green context (seam-level cases). Device(): its device.`},
		{"ST-10", `AttachMemAsync: managed memory (length 0 or whole), or pageable memory where the device can access it (length above 0); Global, Host, Single, of which Host and Single are the program's unchecked promise not to touch it elsewhere; Single on the legacy stream is an error; it replaces the earlier association, in stream order; '__managed__' variables start Global; under Single the CPU may touch it once that stream is done, whatever others do; destroying the stream returns it to its default once the stream's work has finished.`},
		{"ST-11", `Calls may report errors of earlier asynchronous work; such an error is marked as earlier work's in the message.`},
		{"ST-12", `Write-value, wait-value (GEQ, EQ, AND, NOR) 32 and 64 bits, and batches, in stream order.`},
		{"ST-13", `A further context of a device (NewContext) has the primary's constructors. Its Close waits for its work and is refused, changing nothing, while something made there is open or a call there is in progress; afterwards every use is ErrClosed. The Driver's Close closes what is left; Close of a context that is not the program's does nothing.`},
	}},
	{"EV", "Events", []Rule{
		{"EV-01", `Record and wait order work across streams; an event and its recording stream share a context (else ErrInvalidHandle).`},
		{"EV-02", `Elapsed: three distinct errors for timing disabled, not recorded, not complete; else milliseconds, never negative in stream order.`},
		{"EV-03", `Done() is a channel closed at completion; ten thousand waiting goroutines, be it on events of a thousand streams, do not cost ten thousand OS threads: fewer than 64. All wake, once each and soon after the last event. A wait whose context ends leaves nothing behind and takes no other waiter along.`},
		{"EV-04", `Query or sync on an event last recorded inside a capture is ErrCapturedEvent. (On an H200 the question spoils the capture, in Relaxed mode too; and once the capture has ended, well or not, the event answers ErrInvalidValue until it is recorded anew.)`},
	}},
	{"CP", "Capture", []Rule{
		{"CP-01", `Nothing queued during capture runs until the graph is launched (captured kernels must not use texture or surface references; objects are fine; Capture's doc says so). Begin needs a stream that is not capturing and is not legacy.`},
		{"CP-02", `Non-relaxed capture must end on the thread it began on (else ErrCaptureWrongThread; measured: the capture is then gone, status none) and on its own stream (else ErrCaptureUnmatched). 'Capture' and the builder keep the goroutine on its thread, so a user never meets this by accident.`},
		{"CP-03", `Global, ThreadLocal, Relaxed decide which unsafe calls (plain allocation, event query, ...) are refused, by whom; a refused unsafe call invalidates the capture. Relaxed still refuses what conflicts by nature, such as querying an event recorded in the capture. Exchange swaps the mode of the thread and gives back the old one; a push/pop helper restores it on panic too.`},
		{"CP-04", `An invalidated capture must still be ended: End gives ErrCaptureInvalidated and no graph, and afterwards the stream works.`},
		{"CP-05", `Streams forked by events must be joined before End (else ErrCaptureUnjoined), and two captures may not be merged (ErrCaptureMerge).`},
		{"CP-06", `While a blocking stream captures, the legacy stream is unusable: ErrCaptureImplicit; the capture survives the status query.`},
		{"CP-07", `Status: none, active, invalidated. Info: id (unique per capture), graph, current dependencies with edge data. Dependencies can be added to or set.`},
		{"CP-08", `Begin-to-graph adds the captured nodes to an existing graph behind given nodes; that graph cannot be instantiated until End. If the capture fails, the graph is lost (an H200 destroys it with what it owns, and calls with its handle corrupt the process): every call on it is ErrClosed, and what was made of it before is not harmed.`},
		{"CP-09", `Event record and wait with the external flag during capture become event nodes.`},
		{"CP-10", `A builder dropped or closed mid-capture ends the capture; the stream is usable again (from a cleanup on another thread, non-relaxed: the driver's 908 is the success).`},
		{"CP-12", `The library's own background work never spoils anybody's capture: measured, under a Global capture any other thread's query, synchronise or allocation gives 900 and invalidates it, and a context synchronise does so in every mode; from a thread in Relaxed mode queries are harmless. Service threads are locked, Relaxed, and never synchronise a context.`},
		{"CP-13", `A recapture (CUDA 13.3) gives the nodes of a graph what was captured anew, in the same order; the graph lets go of what they used before, and executables made earlier keep it. If other nodes are captured it fails, and the graph can only be closed. On an older driver it is ErrNotSupported, and the graph is as it was.`},
		{"CP-11", `Synchronising, querying or destroying a capturing stream behaves as the driver documents, and never leaves the stream unusable.`},
	}},
	{"GR", "Graphs", []Rule{
		{"GR-01", `Nodes: host, kernel, memcpy, memset, empty, event record, event wait, child graph; edges; cycles refused. Same result as the captured form.`},
		{"GR-02", `A host node runs after its dependencies and before its dependents, once per launch, N launches = N runs.`},
		{"GR-03", `The closure or copied bytes of a host node live as long as any of: the graph, its clones, graphs embedding it, executables made from any of them, launches in flight; then go, exactly once, off the driver thread.`},
		{"GR-04", `Deleting the source node, or closing the graph, leaves executables and clones intact. Closing an executable during a launch is safe; owners go after it ends.`},
		{"GR-05", `One executable never overlaps itself; launches order behind earlier work of their stream.`},
		{"GR-06", `Update (whole graph, one node): the old owner stays while a launch uses it; a refused update changes nothing and says why.`},
		{"GR-07", `A node is never without its owner: what fails between the two leaves the graph as it was, or, at worst, leaks; it never dangles, and it is reported. [sw]`},
		{"GR-08", `Kernel arguments, copy operands and events are retained by their nodes.`},
		{"GR-09", `A graph prints as DOT with host functions by name.`},
		{"GR-10", `A panic in a host node of one launch does not affect the rest of that launch or later launches.`},
		{"GR-11", `Conditional nodes: if, else, while, switch, also inside each other; kernels set the condition. What a body cannot have is refused when it is added; a body goes with its node.`},
		{"GR-12", `Memory allocation nodes: the address is known at once; memory not freed forbids another launch unless it is freed on launch; what such a graph cannot do is refused by name.`},
		{"GR-13", `Graphs built, launched and closed leave no handle, no user object and no memory, however many.`},
	}},
	{"KL", "Kernel launches", []Rule{
		{"KL-01", `Arguments arrive as the C types of their sizes: integers, floats, structs, pointers. A wrong number, a size that is not the parameter's (where the driver tells them, CUDA 12.4), and Go types without a C size are refused by name, and nothing is queued.`},
		{"KL-02", `Dimensions beyond the device's limits, and a kernel of another context, are refused; the message says which.`},
	}},
	{"CY", "Copies", []Rule{
		{"CY-01", `Copies between device, pinned and ordinary memory give equal bytes for every size from 0 to several ring turns, odd sizes and unaligned ends included; sizes that do not match are an error before anything is queued.`},
		{"CY-02", `A copy to or from an ordinary slice is in stream order and returns before the copy is done. Both ends are retained until then; the source slice of a copy to the device may be reused only when the copy has been waited for, and the documentation says so.`},
		{"CY-03", `HostCopy runs in stream order without entering Go, retains both ends, takes overlapping ranges as memmove does, and is capturable.`},
		{"CY-04", `Concurrent staged copies on many streams share the pinned ring without mixing bytes; a slot is reused only after its copy has finished (slots carry a generation).`},
		{"CY-05", `A ring that cannot hold a request uses it in turns; it never blocks on work that the caller has yet to queue.`},
		{"CY-06", `If the context fails, a copy in flight resolves with the error, slots return to the ring, and nothing hangs.`},
		{"CY-08", `64 staged copies on 64 streams, queued at once, complete; so do 64 beside 64 tasks.`},
		{"CY-09", `A slice type that contains Go pointers is refused by name before anything is queued.`},
		{"CY-10", `CopyDone is called exactly once per copy that was queued, on an ordinary goroutine where CUDA is allowed: nil when the copy is done, or why it never will be. Progress counts the bytes that are done. Neither is for a graph: ErrNotSupported.`},
		{"CY-07", `Pinned memory is freed only when no queued work uses it, and never from a driver thread.`},
	}},
	{"TK", "Tasks (goroutines in stream order)", []Rule{
		{"TK-01", `The task starts after earlier work of the stream and later work waits until it returns. Its error or panic is in Err and does not stop the stream, unless StopOnError was asked for.`},
		{"TK-02", `Tasks of different streams run at the same time: eight tasks of 20 ms on eight streams take under 30 ms.`},
		{"TK-03", `A task may call CUDA, also on other streams, also wait for them; waiting for its own stream is ErrDeadlock at once. Nothing in a task, nor in the library while a stream is held, may hang on the driver's implicit synchronisation (measured: while a wait-value holds any stream, cuMemFree, cuMemFreeHost, unregister, module load and unload, context synchronise and stream creation can block until it is released): frees and unloads go to a retire list, streams come from a pool made beforehand; what cannot be had safely returns ErrDeadlock with the reason.`},
		{"TK-04", `64 streams, each with a task that takes a stream, launches a kernel on it and waits for it, complete. At most N streams are held at once per device (default 8, option); the rest wait their turn in the library, in order.`},
		{"TK-05", `Done closes after the function has returned or the task can never run; Wait(ctx) honours ctx; cancelling the context given to Go reaches the function.`},
		{"TK-07", `What is queued on a stream behind a task that waits in the library waits there too, in its order, with what it uses, and so does work of other streams that waits for it by an event or by the legacy stream's rules. Its caller does not wait, but for calls that cannot be made later: copies of host memory, launches of graphs, captures. Query says not done. With StopOnError everything behind the task waits so, and nothing of it is done if the task fails.`},
		{"TK-06", `Tasks in a captured graph run once per launch; two executables of one graph, launched together, do not mistake each other's signals.`},
	}},
	{"TR", "Traces", []Rule{
		{"TR-01", `While a Driver is traced, each operation that the driver is asked to queue has one span: its kind, stream, call and place in the program, with Enqueued not after Returned and Start not after End. One that the driver refuses has its error; a call that is refused before has no span. In a stream the spans' times keep its order, host functions included, within Trace.Accuracy.`},
		{"TR-02", `Tracing changes no result: the order of work, captures of any mode, graphs, and tasks are as without, also where work waits in the library for its turn.`},
		{"TR-03", `Of more spans than the limit the first are kept, and the others are counted.`},
		{"TR-04", `Stop waits for what is queued or runs, until its context ends: then it returns what is known, and an error that says what does not end. What a lost context has ended is not waited for. Stopping again gives the same. There is one tracer at a time; Driver.Close stops it; inside a host function both calls are ErrNotPermitted.`},
		{"TR-05", `Tracers may be started and stopped at any time while other goroutines queue. After Stop nothing of a tracer is left: no goroutine, no event, no stream (checked after every case).`},
		{"TR-06", `A wait names what it waits for: of a stream for an event the span of its latest record, for a stream the span queued there last; of a goroutine likewise.`},
		{"TR-07", `A launch of a graph is a span; each run of a Go function or task of it is one with that launch as its parent. Building and capturing leave none.`},
		{"TR-08", `While package runtime/trace traces, each host function and callback runs in a region and each task is a task, with its name. A Go function with a Name runs with the profiler's label "cuda", and the label is gone afterwards.`},
	}},
	{"LI", "Life and death", []Rule{
		{"LI-01", `Driver.Close with work queued waits for it; Driver.Shutdown(ctx) waits until ctx ends and then says what is stuck. Nothing of ours runs after either has returned nil.`},
		{"LI-02", `Process exit with functions queued does not crash.`},
		{"LI-03", `No goroutine, pinned byte or handle is left after Close (checked after every case), and 100 open/close cycles add no OS thread.`},
		{"LI-04", `No libcuda, a stub libcuda, a driver too old, no device: one clear error each, naming what was tried.`},
		{"LI-05", `A Go program keeps its signals: SIGINT, SIGURG and profiling work after the driver is loaded.`},
	}},
}
