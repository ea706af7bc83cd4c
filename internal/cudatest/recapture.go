package cudatest

import (
	"errors"

	"github.com/hostlaunch/cuda"
)

func recapture(t *T) {
	log, s, b := &Order{}, t.Stream(), t.Builder()
	g := t.Capture(func(b *cuda.GraphBuilder) error { return cuda.HostLaunch(b, log.Add(1)) })
	before := t.Exec(g)
	err := b.BeginRecapture(g, cuda.CaptureThreadLocal)
	if errors.Is(err, cuda.ErrNotSupported) {
		t.Is(err, cuda.ErrNotSupported)
		t.Contains(err, "CUDA 13.3")
		t.OK(t.Exec(g).Launch(s)) // as it was
		t.OK(b.BeginToGraph(g, nil, cuda.CaptureThreadLocal))
		_, err = b.End()
		t.OK(err)
		t.Sync(s)
		log.Want(t, 1)
		return
	}
	t.OK(err)
	t.Host(b, log.Add(2))
	same, err := b.End()
	t.OK(err)
	if same != g {
		t.Error("End gave another graph")
	}
	t.OK(before.Launch(s))
	t.OK(t.Exec(g).Launch(s))
	t.Sync(s)
	log.Want(t, 1, 2)
	t.OK(b.BeginRecapture(g, cuda.CaptureThreadLocal))
	cuda.HostLaunch(b, log.Add(3))
	err = cuda.HostLaunch(b, log.Add(4)) // one too many
	if _, end := b.End(); err == nil {
		err = end
	}
	t.Logf("other nodes: %v", err)
	t.Is(err, cuda.ErrGraphRecaptureFailure)
	_, err = g.Instantiate()
	t.Is(err, cuda.ErrIllegalState)
	t.Works(s)
}

// graphClosedMeanwhile: what was captured into a graph that has been closed goes with it.
func graphClosedMeanwhile(t *T) {
	b := t.Builder()
	g, err := t.Device(0).NewGraph()
	t.OK(err)
	err = b.BeginToGraph(g, nil, cuda.CaptureThreadLocal)
	t.Needs(err)
	t.OK(err)
	t.Host(b, func() { t.Error("ran") })
	t.OK(g.Close())
	_, err = b.End()
	t.OK(err)
	t.nothingCaptured(t.Stream())
}
