package cudatest

import (
	"maps"
	"reflect"
	"slices"

	"github.com/hostlaunch/cuda"
)

// everyCall are all calls that reach the driver, by the names that their errors give them. s and other are streams of device
// 0. The first three are what the NVIDIA driver itself lets through inside a host function, or answers as if nothing were wrong
// (facts/h200.md). covered checks that none is forgotten.
func everyCall(t *T, s, other *cuda.Stream) map[string]func() error {
	e, b, pinned := t.Event(cuda.WithTiming()), t.Buffer(64), t.Pinned(64).Bytes()
	k, dev, small := t.Kernel("nothing"), t.Device(0), make([]byte, 64)
	legacy := dev.DefaultStream()
	calls := map[string]func() error{
		"Stream.Query":         func() error { _, err := s.Query(); return err },
		"HostLaunch":           func() error { return cuda.HostLaunch(other, func() { t.Error("a refused function ran") }) },
		"Event.Query":          func() error { _, err := e.Query(); return err },
		"Stream.Sync":          func() error { return s.Sync() },
		"Stream.Wait":          func() error { return other.Wait(t.Context()) },
		"Stream.Record":        func() error { return other.Record(e) },
		"Stream.WaitEvent":     func() error { return other.WaitEvent(e) },
		"Stream.WaitStream":    func() error { return other.WaitStream(s) },
		"Stream.Launch":        func() error { return other.Launch(k, one) },
		"Stream.Memset":        func() error { return other.Memset(b, 1) },
		"Stream.Memset16":      func() error { return other.Memset16(b, 1) },
		"Stream.Memset32":      func() error { return other.Memset32(b, 1) },
		"Stream.CopyBuffer":    func() error { return other.CopyBuffer(b, b) },
		"Stream.ID":            func() error { _, err := legacy.ID(); return err }, // other streams' ids need no driver
		"Stream.Flags":         func() error { _, err := s.Flags(); return err },
		"Stream.Priority":      func() error { _, err := s.Priority(); return err },
		"Stream.DeviceOrdinal": func() error { _, err := s.DeviceOrdinal(); return err },
		"Event.Sync":           func() error { return e.Sync() },
		"Event.Wait":           func() error { return e.Wait(t.Context()) },
		"Event.Elapsed":        func() error { _, err := e.Elapsed(e); return err },
		"CopyToHost":           func() error { return cuda.CopyToHost(other, pinned, b) },
		"CopyToDevice":         func() error { return cuda.CopyToDevice(other, b, pinned) },
		"Buffer.ReadAt":        func() error { _, err := b.ReadAt(small, 0); return err },
		"Buffer.WriteAt":       func() error { _, err := b.WriteAt(small, 0); return err },
		"NewStream":            func() error { _, err := dev.NewStream(); return err },
		"NewEvent":             func() error { _, err := dev.NewEvent(); return err },
		"Alloc":                func() error { _, err := dev.Alloc(1); return err },
		"AllocPinned":          func() error { _, err := dev.AllocPinned(1); return err },
		"LoadModule":           func() error { _, err := dev.LoadModule(t.cfg.PTX); return err },
		"Module.Kernel":        func() error { _, err := k.Module().Kernel("nothing"); return err },
		"BorrowStream":         func() error { _, err := dev.BorrowStream(s.CUDAStream()); return err },
		"StreamOf":             func() error { _, err := dev.StreamOf(s); return err },
		"WithThreadStream":     func() error { return dev.WithThreadStream(func(*cuda.Stream) error { return nil }) },
		"Driver.Device":        func() error { _, err := t.Driver.Device(0); return err },
		"Driver.Shutdown":      func() error { return t.Driver.Shutdown(t.Context()) },
		"Device.TotalMemory":   func() error { _, err := dev.TotalMemory(); return err },

		"Device.ComputeCapability": func() error { _, _, err := dev.ComputeCapability(); return err },
		"Context.StreamPriorities": func() error { _, _, err := dev.StreamPriorities(); return err },
	}
	maps.Copy(calls, laterCalls(t, s, other))
	maps.Copy(calls, graphCalls(t, s))
	return calls
}

// notOfEveryCall are the methods that everyCall leaves out, and why.
var notOfEveryCall = map[string]string{
	"Stream.Close":             "accepted inside: HL-06, Close inside is carried out later",
	"Event.Close":              "as Stream.Close",
	"Buffer.Close":             "as Stream.Close",
	"PinnedBuffer.Close":       "as Stream.Close",
	"Module.Close":             "as Stream.Close",
	"Graph.Close":              "as Stream.Close",
	"GraphExec.Close":          "as Stream.Close",
	"Graph.Context":            noDriver,
	"Driver.StartTrace":        "is of no context; refused inside: TR-04, inside a host function",
	"Driver.Close":             "accepted inside: LI-01, Close inside a host function",
	"Event.Done":               "has no error to give: HL-06, Done inside waits all the same",
	"Context.Close":            "does nothing on a primary context; accepted inside: ST-13, Close inside a host function",
	"Device.NewGreenContext":   "needs an SMResource, the call for which is refused: HL-06, managed memory and green contexts inside",
	"Stream.Context":           noDriver,
	"Buffer.Word":              noDriver,
	"PinnedBuffer.Word":        noDriver,
	"ManagedBuffer.Close":      "as Stream.Close",
	"PinnedPool.Close":         "as Stream.Close",
	"GreenContext.Close":       "as Stream.Close",
	"GreenContext.NewStream":   "not of every driver: HL-06, a green context inside",
	"GreenContext.SMResource":  "as GreenContext.NewStream",
	"GreenContext.Context":     noDriver,
	"ManagedBuffer.Buffer":     noDriver,
	"ManagedBuffer.Bytes":      noDriver,
	"ManagedBuffer.Context":    noDriver,
	"ManagedBuffer.Len":        noDriver,
	"ManagedBuffer.HostAccess": "allowed inside: HL-06, managed memory and green contexts inside",
	"Task.Done":                noDriver,
	"Task.Err":                 noDriver,
	"Task.Name":                noDriver,
	"PinnedPool.Context":       noDriver,
	"PinnedPool.Len":           noDriver,
	"PinnedBlock.Bytes":        noDriver,
	"PinnedBlock.Release":      noDriver,
	"Stream.CUDAStream":        noDriver,
	"Event.Context":            noDriver,
	"Buffer.Context":           noDriver,
	"Buffer.Len":               noDriver,
	"Buffer.Ptr":               noDriver,
	"Buffer.Slice":             noDriver,
	"PinnedBuffer.Bytes":       noDriver,
	"PinnedBuffer.Context":     noDriver,
	"PinnedBuffer.Len":         noDriver,
	"Module.Context":           noDriver,
	"Kernel.Module":            noDriver,
	"Kernel.Name":              noDriver,
	"Device.Driver":            noDriver,
	"Device.Name":              noDriver,
	"Device.Ordinal":           noDriver,
	"Device.String":            noDriver,
	"Context.DefaultStream":    noDriver,
	"Driver.DeviceCount":       noDriver,
	"Driver.Name":              noDriver,
	"Driver.Stats":             noDriver,
	"Driver.StagingBytes":      noDriver,
	"Driver.Version":           noDriver,
}

const noDriver = "needs no driver"

// covered wants each method of the public types to be among calls or exempt, and nothing to be exempt that is not there.
func (t *T) covered(calls map[string]func() error, exempt map[string]string) {
	t.Helper()
	methods := publicMethods()
	for _, name := range methods {
		_, called := calls[name]
		if !called && exempt[name] == "" {
			t.Errorf("%s is neither called here nor exempt: add it to everyCall or, with a reason, to notOfEveryCall", name)
		}
		if called && exempt[name] != "" {
			t.Errorf("%s is called, and exempt as well (%s)", name, exempt[name])
		}
	}
	for name := range exempt {
		if !slices.Contains(methods, name) {
			t.Errorf("%s is exempt, and does not exist", name)
		}
	}
}

// publicMethods are the methods of the public types, named as their errors name them: those of a Context that make something
// by themselves alone. A GraphBuilder's are left out: they reach the driver as its stream's do.
func publicMethods() (names []string) {
	context := reflect.TypeFor[*cuda.Context]()
	for _, p := range []reflect.Type{
		context, reflect.TypeFor[*cuda.Driver](), reflect.TypeFor[*cuda.Device](), reflect.TypeFor[*cuda.Stream](), reflect.TypeFor[*cuda.Event](),
		reflect.TypeFor[*cuda.Buffer](), reflect.TypeFor[*cuda.PinnedBuffer](), reflect.TypeFor[*cuda.Module](), reflect.TypeFor[*cuda.Kernel](),
		reflect.TypeFor[*cuda.Graph](), reflect.TypeFor[*cuda.GraphExec](), reflect.TypeFor[*cuda.PinnedPool](), reflect.TypeFor[*cuda.PinnedBlock](),
		reflect.TypeFor[*cuda.GreenContext](), reflect.TypeFor[*cuda.ManagedBuffer](), reflect.TypeFor[*cuda.Task](),
	} {
		for i := range p.NumMethod() {
			name := p.Method(i).Name
			if _, promoted := context.MethodByName(name); promoted && p == reflect.TypeFor[*cuda.Device]() {
				continue
			}
			if p == context && makers[name] {
				names = append(names, name)
			} else {
				names = append(names, p.Elem().Name()+"."+name)
			}
		}
	}
	return names
}

// makers are the methods of Context whose errors do without its name.
var makers = map[string]bool{
	"NewStream": true, "NewEvent": true, "Alloc": true, "AllocPinned": true, "LoadModule": true, "BorrowStream": true, "StreamOf": true,
	"WithThreadStream": true, "NewGraphBuilder": true, "NewGraph": true, "AllocManaged": true, "NewPinnedPool": true,
}
