package cudatest

import (
	"context"

	"github.com/hostlaunch/cuda"
)

// laterCalls are the part of everyCall that came with the driver's whole stream API.
func laterCalls(t *T, s, other *cuda.Stream) map[string]func() error {
	dev, word, m := t.Device(0), t.Buffer(64).Word(0), t.Managed(cuda.AttachGlobal)
	b, pool, mem := t.Buffer(64), t.Pool(1<<16), make([]byte, 64)
	block, ok, err := pool.TryGet(64)
	if t.OK(err); !ok {
		t.Fatal("no room in a new pool")
	}
	t.Cleanup(block.Release)
	row := cuda.Rows{Width: 64, Height: 1}
	host := cuda.HostSlice(make([]byte, 8))
	task := t.Task(other, func(context.Context) error { return nil })
	t.Ends(task)
	nothing := func(error) { t.Error("a refused callback ran") }
	return map[string]func() error{
		"Go": func() error {
			_, err := cuda.Go(other, func(context.Context) error { t.Error("a refused task ran"); return nil })
			return err
		},
		"Task.Wait":                        func() error { return task.Wait(t.Context()) },
		"AddCallback":                      func() error { return cuda.AddCallback(other, nothing) },
		"HostLaunchNative":                 func() error { return cuda.HostLaunchNative(other, t.native("note"), cuda.NativeData{}) },
		"HostCopy":                         func() error { return cuda.HostCopy(other, host, host) },
		"Stream.SynchronizationPolicy":     func() error { _, err := s.SynchronizationPolicy(); return err },
		"Stream.SetSynchronizationPolicy":  func() error { return s.SetSynchronizationPolicy(cuda.SyncAuto) },
		"Stream.SetPriority":               func() error { return s.SetPriority(0) },
		"Stream.AccessPolicyWindow":        func() error { _, err := s.AccessPolicyWindow(); return err },
		"Stream.SetAccessPolicyWindow":     func() error { return s.SetAccessPolicyWindow(cuda.AccessPolicyWindow{}) },
		"Stream.MemSyncDomain":             func() error { _, err := s.MemSyncDomain(); return err },
		"Stream.SetMemSyncDomain":          func() error { return s.SetMemSyncDomain(cuda.DomainDefault) },
		"Stream.MemSyncDomainMap":          func() error { _, err := s.MemSyncDomainMap(); return err },
		"Stream.SetMemSyncDomainMap":       func() error { return s.SetMemSyncDomainMap(cuda.MemSyncDomainMap{}) },
		"Stream.CopyAttributes":            func() error { return other.CopyAttributes(s) },
		"Stream.WriteValue32":              func() error { return other.WriteValue32(word, 1) },
		"Stream.WriteValue64":              func() error { return other.WriteValue64(word, 1) },
		"Stream.WaitValue32":               func() error { return other.WaitValue32(word, cuda.ValueGEQ, 0) },
		"Stream.WaitValue64":               func() error { return other.WaitValue64(word, cuda.ValueGEQ, 0) },
		"Stream.Batch":                     func() error { return other.Batch(cuda.Write32(word, 1)) },
		"Stream.CaptureStatus":             func() error { _, err := s.CaptureStatus(); return err },
		"Stream.CaptureInfo":               func() error { _, err := s.CaptureInfo(); return err },
		"Stream.UpdateCaptureDependencies": func() error { return s.UpdateCaptureDependencies(true) },
		"Capture": func() error {
			_, err := cuda.Capture(other, cuda.CaptureThreadLocal, func(*cuda.GraphBuilder) error { return nil })
			return err
		},
		"Driver.WithCaptureMode":   func() error { return t.Driver.WithCaptureMode(cuda.CaptureRelaxed, func() error { return nil }) },
		"NewGraphBuilder":          func() error { _, err := dev.NewGraphBuilder(); return err },
		"NewGraph":                 func() error { _, err := dev.NewGraph(); return err },
		"AllocManaged":             func() error { _, err := dev.AllocManaged(1, cuda.AttachGlobal); return err },
		"Stream.Attach":            func() error { return other.Attach(m, cuda.AttachGlobal) },
		"Stream.Contexts":          func() error { _, _, err := s.Contexts(); return err },
		"Stream.SMResource":        func() error { _, err := s.SMResource(); return err },
		"Device.SMResource":        func() error { _, err := dev.SMResource(); return err },
		"NewPinnedPool":            func() error { _, err := dev.NewPinnedPool(1); return err },
		"PinnedPool.Get":           func() error { _, err := pool.Get(t.Context(), 1); return err },
		"PinnedPool.TryGet":        func() error { _, _, err := pool.TryGet(1); return err },
		"PinnedBlock.ReleaseAfter": func() error { return block.ReleaseAfter(s) },
		"Pin":                      func() error { _, err := cuda.Pin(dev.Context, mem); return err },
		"Stream.CopyRows":          func() error { return other.CopyRows(b, b, row) },
		"CopyRowsToHost":           func() error { return cuda.CopyRowsToHost(other, mem, b, row) },
		"CopyRowsToDevice":         func() error { return cuda.CopyRowsToDevice(other, b, mem, row) },
		"Device.NewContext":        func() error { _, err := dev.NewContext(); return err },
	}
}
