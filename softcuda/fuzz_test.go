package softcuda_test

import (
	"math/rand/v2"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/modeltest"
	"github.com/hostlaunch/cuda/internal/testkernels"
	"github.com/hostlaunch/cuda/softcuda"
)

// FuzzProgram compares the software device with the model of stream order on the programs that bytes say: most on the fast device, some
// under the checker, some with a seed.
func FuzzProgram(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(noise(seed, 16<<(seed%4)))
	}
	modeltest.Fuzz(f, modeltest.FuzzConfig{
		Open: func(choice byte) (*cuda.Driver, func() error) {
			o := softcuda.Options{Kernels: testkernels.Twins()}
			switch {
			case choice >= 0xf0:
				o.Seed = uint64(choice)
			case choice >= 0xc0:
				o.Check, o.Arguments = new(softcuda.Check), map[string][]softcuda.ArgKind{"append": {softcuda.Atomic}}
			}
			return softcuda.New(o), o.Check.Err
		},
		PTX: testkernels.PTX,
	})
}

// noise is a fuzz target's first input: n bytes of any kind.
func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
