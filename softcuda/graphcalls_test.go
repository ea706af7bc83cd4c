package softcuda_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
)

// TestBuilderSyncMode: what a builder queues is asked of the driver with its sync mode (HL-21).
func TestBuilderSyncMode(t *testing.T) {
	f, _, dev := openFaulty(t, 0)
	s := newStreams(t, dev, 1)[0]
	g, err := cuda.Capture(s, cuda.CaptureThreadLocal, func(b *cuda.GraphBuilder) error {
		return errors.Join(cuda.HostLaunch(b, func() {}), cuda.HostLaunch(b, func() {}, cuda.SyncMode(cuda.Spin)))
	})
	noErr(t, err)
	defer g.Close()
	if plain, mode := f.Calls("LaunchHostFunc"), f.Calls("LaunchHostFuncMode"); plain != 1 || mode != 1 {
		t.Errorf("%d calls without a mode and %d with one, want 1 and 1", plain, mode)
	}
}

// TestEmbeddingRefused: a graph that cannot be embedded is refused for what it has, and not for the driver's age.
func TestEmbeddingRefused(t *testing.T) {
	_, _, dev := openFaulty(t, 0)
	parent, err := dev.NewGraph()
	noErr(t, err)
	defer parent.Close()
	inner, err := dev.NewGraph()
	noErr(t, err)
	defer inner.Close()
	cond, err := inner.NewCondition()
	noErr(t, err)
	_, _, err = inner.AddIf(cond)
	noErr(t, err)
	_, err = parent.AddNode(cuda.ChildGraphParams(inner))
	if !errors.Is(err, cuda.ErrNotSupported) || !strings.Contains(err.Error(), "conditional nodes cannot be embedded") {
		t.Errorf("AddNode: %v", err)
	}
}
