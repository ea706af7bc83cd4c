package cuda

// WriteValue32 adds writing value to the 4 bytes at at. See Queue.
func (b *GraphBuilder) WriteValue32(at Word, value uint32) error {
	return b.memOps("GraphBuilder.WriteValue32", []MemOp{Write32(at, value)})
}

// WriteValue64 adds writing value to the 8 bytes at at.
func (b *GraphBuilder) WriteValue64(at Word, value uint64) error {
	return b.memOps("GraphBuilder.WriteValue64", []MemOp{Write64(at, value)})
}

// WaitValue32 adds waiting until the 4 bytes at at meet a condition.
func (b *GraphBuilder) WaitValue32(at Word, cond WaitCondition, value uint32) error {
	return b.memOps("GraphBuilder.WaitValue32", []MemOp{Wait32(at, cond, value)})
}

// WaitValue64 adds waiting until the 8 bytes at at meet a condition.
func (b *GraphBuilder) WaitValue64(at Word, cond WaitCondition, value uint64) error {
	return b.memOps("GraphBuilder.WaitValue64", []MemOp{Wait64(at, cond, value)})
}

// Batch adds memory operations in their order, at most 255. On an error none is added.
func (b *GraphBuilder) Batch(ops ...MemOp) error { return b.memOps("GraphBuilder.Batch", ops) }

func (b *GraphBuilder) memOps(op string, ops []MemOp) error {
	if _, err := b.building(op); err != nil {
		return err
	}
	return b.stream.batch(op, ops)
}
