// Package source gives random programs the numbers that they are drawn by: those of a seed, or the bytes of a fuzz target, so that
// whoever searches among the bytes searches among the programs.
package source

import "math/rand/v2"

// Numbers are what a program is drawn by. A *rand.Rand is one.
type Numbers interface {
	// IntN is a number from 0 to n-1. n must be above 0.
	IntN(n int) int
	// Uint32 is any number.
	Uint32() uint32
}

// Seed are the numbers of a seed, others for each use.
func Seed(seed, use uint64) Numbers { return rand.New(rand.NewPCG(seed, use)) }

// Bytes are the numbers that data says. When it has come to its end all further ones are 0.
type Bytes struct{ data []byte }

// NewBytes makes Bytes of data, which it keeps.
func NewBytes(data []byte) *Bytes { return &Bytes{data} }

// Over reports whether the bytes have come to their end.
func (b *Bytes) Over() bool { return len(b.data) == 0 }

// IntN takes as few bytes as n needs: so each byte that changes is one choice that changes.
func (b *Bytes) IntN(n int) int {
	var v uint64
	for most := uint64(n - 1); most > 0; most >>= 8 {
		v = v<<8 | b.next()
	}
	return int(v % uint64(n))
}

// Uint32 takes four bytes.
func (b *Bytes) Uint32() uint32 {
	return uint32(b.next()<<24 | b.next()<<16 | b.next()<<8 | b.next())
}

func (b *Bytes) next() uint64 {
	if len(b.data) == 0 {
		return 0
	}
	v := b.data[0]
	b.data = b.data[1:]
	return uint64(v)
}
