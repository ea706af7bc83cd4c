package cuda_test

import (
	"testing"

	"github.com/hostlaunch/cuda"
)

func TestBadCaptureArguments(t *testing.T) {
	k := newKit(t)
	var (
		s  *cuda.Stream
		b  *cuda.GraphBuilder
		g  *cuda.Graph
		x  *cuda.GraphExec
		c  *cuda.Context
		d  *cuda.Driver
		no cuda.CaptureMode = 9
	)
	build := func(*cuda.GraphBuilder) error { return nil }
	open := must(k.dev.NewGraphBuilder())(t)
	mode := cuda.CaptureThreadLocal
	checkBad(t, []bad{
		{"stream", func() error { return second(cuda.Capture(s, mode, build)) }, cuda.ErrInvalidValue, "Capture", "stream is nil"},
		{"build", func() error { return second(cuda.Capture(k.s, mode, nil)) }, cuda.ErrInvalidValue, "Capture", "build is nil"},
		{"mode", func() error { return second(cuda.Capture(k.s, no, build)) }, cuda.ErrInvalidValue, "Capture", "mode 9*CaptureThreadLocal"},
		{"legacy", func() error { return second(cuda.Capture(k.dev.DefaultStream(), mode, build)) }, cuda.ErrCaptureUnsupported, "Capture", "legacy*NewStream"},
		{"builder context", func() error { return second(c.NewGraphBuilder()) }, cuda.ErrInvalidValue, "NewGraphBuilder", "context is nil"},
		{"graph context", func() error { return second(c.NewGraph()) }, cuda.ErrInvalidValue, "NewGraph", "context is nil"},
		{"begin", func() error { return b.Begin(mode) }, cuda.ErrInvalidValue, "GraphBuilder.Begin", "builder is nil"},
		{"begin mode", func() error { return open.Begin(no) }, cuda.ErrInvalidValue, "GraphBuilder.Begin", "mode 9"},
		{"begin to nil", func() error { return open.BeginToGraph(nil, nil, mode) }, cuda.ErrInvalidValue, "GraphBuilder.BeginToGraph", "graph is nil"},
		{"end", func() error { return second(b.End()) }, cuda.ErrInvalidValue, "GraphBuilder.End", "builder is nil"},
		{"host", func() error { return cuda.HostLaunch(b, func() {}) }, cuda.ErrInvalidValue, "HostLaunch", "builder is nil"},
		{"host early", func() error { return cuda.HostLaunch(open, func() {}) }, cuda.ErrNotBuilding, "HostLaunch", "Begin first"},
		{"launch", func() error { return b.Launch(k.k, one) }, cuda.ErrInvalidValue, "GraphBuilder.Launch", "builder is nil"},
		{"copy", func() error { return cuda.CopyToDevice(b, k.b, make([]byte, 64)) }, cuda.ErrInvalidValue, "CopyToDevice", "builder is nil"},
		{"split", func() error { return second(b.Split(1)) }, cuda.ErrInvalidValue, "GraphBuilder.Split", "builder is nil"},
		{"join", func() error { return b.Join() }, cuda.ErrInvalidValue, "GraphBuilder.Join", "builder is nil"},
		{"instantiate", func() error { return second(g.Instantiate()) }, cuda.ErrInvalidValue, "Graph.Instantiate", "graph is nil"},
		{"nodes", func() error { return second(g.Nodes()) }, cuda.ErrInvalidValue, "Graph.Nodes", "graph is nil"},
		{"graph launch", func() error { return x.Launch(k.s) }, cuda.ErrInvalidValue, "GraphExec.Launch", "graph is nil"},
		{"status", func() error { return second(s.CaptureStatus()) }, cuda.ErrInvalidValue, "Stream.CaptureStatus", "stream is nil"},
		{"info", func() error { return second(s.CaptureInfo()) }, cuda.ErrInvalidValue, "Stream.CaptureInfo", "stream is nil"},
		{"update", func() error { return k.s.UpdateCaptureDependencies(true) }, cuda.ErrIllegalState, "Stream.UpdateCaptureDependencies", "not capturing"},
		{"mode driver", func() error { return d.WithCaptureMode(mode, func() error { return nil }) }, cuda.ErrInvalidValue, "Driver.WithCaptureMode", "driver is nil"},
		{"mode fn", func() error { return k.d.WithCaptureMode(mode, nil) }, cuda.ErrInvalidValue, "Driver.WithCaptureMode", "fn is nil"},
	})
	for name, err := range map[string]error{"builder": b.Close(), "graph": g.Close(), "executable": x.Close()} {
		if err != nil {
			t.Errorf("closing a nil %s: %v", name, err)
		}
	}
	// What is inside the build of a capture.
	g, err := cuda.Capture(k.s, mode, func(b *cuda.GraphBuilder) error {
		checkBad(t, []bad{
			{"nil fn", func() error { return cuda.HostLaunch(b, nil) }, cuda.ErrInvalidValue, "HostLaunch", "fn is nil"},
			{"nil kernel", func() error { return b.Launch(nil, one) }, cuda.ErrInvalidValue, "GraphBuilder.Launch", "kernel is nil"},
			{"nil event", func() error { return b.RecordExternal(nil) }, cuda.ErrInvalidValue, "GraphBuilder.RecordExternal", "event is nil"},
			{"nil other", func() error { return b.WaitStream(nil) }, cuda.ErrInvalidValue, "GraphBuilder.WaitStream", "other is nil"},
			{"nil branch", func() error { return b.Join(nil) }, cuda.ErrInvalidValue, "GraphBuilder.Join", "builder is nil"},
			{"begin", func() error { return b.Begin(mode) }, cuda.ErrInvalidValue, "GraphBuilder.Begin", "Capture begins"},
			{"end", func() error { return second(b.End()) }, cuda.ErrInvalidValue, "GraphBuilder.End", "Capture ends"},
		})
		return nil
	})
	if err != nil || g.Close() != nil {
		t.Errorf("the capture was spoilt: %v", err)
	}
}
