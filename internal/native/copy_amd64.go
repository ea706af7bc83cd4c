package native

// copyLevel says of what vectors the blocks of a copy are.
//
//lint:ignore U1000 the assembly reads it
var copyLevel = processorLevel()

const (
	levelSSE2 = iota
	levelAVX2
	levelAVX512 // for streaming; otherwise they are no better than AVX2's
)

func cpuid(eax, ecx uint32) (a, b, c, d uint32)
func xgetbv() (low uint32)

// processorLevel asks the processor which vectors it has, and whether the system saves them when threads change.
func processorLevel() uint8 {
	const osxsave, avx, avx2, avx512f = 1 << 27, 1 << 28, 1 << 5, 1 << 16
	const ymm, zmm = 0x6, 0xe6
	most, _, _, _ := cpuid(0, 0)
	if _, _, c, _ := cpuid(1, 0); most < 7 || c&osxsave == 0 || c&avx == 0 || xgetbv()&ymm != ymm {
		return levelSSE2
	}
	_, b, _, _ := cpuid(7, 0)
	switch {
	case b&avx2 != 0 && b&avx512f != 0 && xgetbv()&zmm == zmm:
		return levelAVX512
	case b&avx2 != 0:
		return levelAVX2
	}
	return levelSSE2
}
