package driver

// Holds is what the library must know of a driver to hold streams from outside, with memory operations.
type Holds interface {
	// HardwareQueues is how many queues of the hardware all streams share. A stream that waits for the CPU blocks one, and with
	// it every other stream that has the same one. 0: streams share nothing.
	HardwareQueues() int
	// EmulateSpin reports whether a host function of mode Spin is had sooner by a thread that polls memory than by
	// LaunchHostFuncMode.
	EmulateSpin() bool
	// MemoryWritten says that the CPU has written to memory that a wait-value may wait for.
	MemoryWritten()
}
