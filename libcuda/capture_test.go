//go:build linux && (amd64 || arm64)

package libcuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

// captureMethodCases are the cases of captures.
func captureMethodCases() []methodCase {
	deps, edges := []driver.GraphNode{0x71, 0x72}, []driver.EdgeData{{}, {FromPort: 1, ToPort: 2, Type: 3}}
	return []methodCase{
		{"StreamBeginCapture", func(d driver.Driver) any { return d.StreamBeginCapture(ctx, stream, driver.CaptureRelaxed) },
			"cuStreamBeginCapture(stream=0x5a, mode=2) in 0xc0", "0"},
		{"StreamBeginCaptureToGraph", func(d driver.Driver) any {
			return d.StreamBeginCaptureToGraph(ctx, stream, 0x62, deps, edges, driver.CaptureThreadLocal)
		}, "cuStreamBeginCaptureToGraph(stream=0x5a, graph=0x62, deps=2 0x71 0x72 0/0/0 1/2/3, mode=1) in 0xc0", "0"},
		{"StreamBeginRecaptureToGraph", func(d driver.Driver) any {
			return d.StreamBeginRecaptureToGraph(ctx, stream, 0x62, driver.CaptureThreadLocal)
		}, "cuStreamBeginRecaptureToGraph(stream=0x5a, mode=1, graph=0x62, changed: 0, data=(nil)) in 0xc0", "0"},
		{"StreamEndCapture", func(d driver.Driver) any { return list(d.StreamEndCapture(ctx, stream)) }, "cuStreamEndCapture(stream=0x5a) in 0xc0", "97 0"},
		{"StreamIsCapturing", func(d driver.Driver) any { return list(d.StreamIsCapturing(ctx, stream)) }, "cuStreamIsCapturing(stream=0x5a) in 0xc0", "2 0"},
		{"StreamGetCaptureInfo", func(d driver.Driver) any { return list(d.StreamGetCaptureInfo(ctx, stream)) },
			"cuStreamGetCaptureInfo(stream=0x5a) in 0xc0", "{1 78187493530 97 [113 114] [{0 0 0 [0 0 0 0 0]} {1 2 3 [0 0 0 0 0]}]} 0"},
		{"StreamUpdateCaptureDependencies", func(d driver.Driver) any {
			return d.StreamUpdateCaptureDependencies(ctx, stream, deps, nil, driver.CaptureSetDependencies)
		}, "cuStreamUpdateCaptureDependencies(stream=0x5a, deps=2 0x71 0x72, flags=1) in 0xc0", "0"},
		{"EventRecordWithFlags", func(d driver.Driver) any {
			return d.EventRecordWithFlags(ctx, event, stream, driver.EventRecordExternal)
		},
			"cuEventRecordWithFlags(event=0xe5, stream=0x5a, flags=1) in 0xc0", "0"},

		{"ThreadExchangeStreamCaptureMode", func(d driver.Driver) any {
			before, r := d.ThreadExchangeStreamCaptureMode(driver.CaptureThreadLocal)
			during, _ := d.ThreadExchangeStreamCaptureMode(before)
			return list(before, r, during)
		}, "", "0 0 1"},
	}
}

// Lists that are empty have no address, and nothing is read that the driver did not write.
func TestCaptureNothing(t *testing.T) {
	f := newFake(t)
	nv := f.open(driver.Upcalls{})
	f.log()
	if info, r := nv.StreamGetCaptureInfo(ctx, 0x5b); r != 0 || info.Status != driver.CaptureNone || info.Deps != nil || info.ID != 0 {
		t.Errorf("not capturing: %+v, %d", info, r)
	}
	if nodes, r := nv.GraphGetNodes(ctx, 0x60); r != 0 || nodes != nil {
		t.Errorf("empty graph: %v, %d", nodes, r)
	}
	f.log()
	nv.StreamBeginCaptureToGraph(ctx, stream, 0x62, nil, nil, driver.CaptureGlobal)
	if got, want := f.log()[0], "cuStreamBeginCaptureToGraph(stream=0x5a, graph=0x62, deps=0, mode=0) in 0xc0"; got != want {
		t.Errorf("called %s, want %s", got, want)
	}
}

// A driver of CUDA 12.0 captures, but knows no edge data.
func TestCaptureOnOldDriver(t *testing.T) {
	f := newFake(t)
	f.set(knobVersion, 12000)
	nv := f.open(driver.Upcalls{})
	_, r1 := nv.StreamGetCaptureInfo(ctx, stream)
	_, r2 := nv.GraphGetEdges(ctx, 0x61)
	r3 := nv.StreamUpdateCaptureDependencies(ctx, stream, nil, nil, 0)
	r4 := nv.StreamBeginCaptureToGraph(ctx, stream, 0x61, nil, nil, 0)
	r5 := nv.StreamBeginRecaptureToGraph(ctx, stream, 0x61, 0)
	for i, r := range []driver.Result{r1, r2, r3, r4, r5} {
		if r != driver.ErrorNotSupported {
			t.Errorf("call %d answers %d", i, r)
		}
	}
	if v := nv.Needs("cuStreamGetCaptureInfo"); v != 12030 {
		t.Errorf("Needs: %d", v)
	}
}
