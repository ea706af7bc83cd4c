package cudatest

import (
	"slices"

	"github.com/hostlaunch/cuda"
)

var kernelCases = []Case{
	{ID: "KL-01", Name: "arguments arrive", Run: argumentsArrive},
	{ID: "KL-01", Name: "wrong arguments", Run: wrongArguments},
	{ID: "KL-02", Name: "limits", Run: launchLimits},
}

type pair struct {
	A uint32
	B uint64
}

func argumentsArrive(t *T) {
	s, out := t.Stream(), t.Buffer(64)
	t.OK(s.Launch(t.Kernel("arguments"), one, uint8(1), int16(2), uint32(3), int64(4), float32(5), 6.0, pair{7, 8}, out))
	got := make([]uint64, 8)
	t.OK(cuda.CopyToHost(s, got, out))
	t.Sync(s)
	if want := []uint64{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("arrived as %v, want %v", got, want)
	}
}

func wrongArguments(t *T) {
	s, out, k := t.Stream(), t.Buffer(64), t.Kernel("store")
	for _, args := range [][]any{
		{}, {out}, {out, uint32(1), uint32(2)}, // number
		{out, uint64(1)}, {uint32(1), uint32(1)}, // size
		{out, 1}, {out, uint(1)}, {[]uint32{1}, uint32(1)}, {new(uint32), uint32(1)}, {out, "x"}, {nil, uint32(1)}, // type
	} {
		t.Is(s.Launch(k, one, args...), cuda.ErrInvalidValue)
	}
	if done, err := s.Query(); !done || err != nil {
		t.Errorf("Query = %v, %v: something was queued", done, err)
	}
}

func launchLimits(t *T) {
	s, k := t.Stream(), t.Kernel("nothing")
	for _, cfg := range []cuda.LaunchConfig{
		{},
		{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 2048}},
		{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 32, Y: 64}},
		{Grid: cuda.Dim3{X: 1, Y: 70_000}, Block: cuda.Dim3{X: 1}},
		{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 1}, SharedMem: 1 << 20},
		{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 1}, SharedMem: -1},
		{Grid: cuda.Dim3{X: -1}, Block: cuda.Dim3{X: 1}},
	} {
		t.Is(s.Launch(k, cfg), cuda.ErrInvalidValue)
	}
	t.OK(s.Launch(k, cuda.Grid1D(100_000, 256)))
	t.Sync(s)
}
