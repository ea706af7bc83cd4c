package softcuda

// HardwareQueues implements driver.Holds: streams share nothing here.
func (m *machine) HardwareQueues() int { return 0 }

// EmulateSpin implements driver.Holds. A goroutine of the device has nothing to spin for; and one that spins would keep the
// virtual time of a synctest bubble from moving.
func (m *machine) EmulateSpin() bool { return false }

// MemoryWritten implements driver.Holds: it looks at the wait-values at once.
func (m *machine) MemoryWritten() {
	m.mu.Lock()
	defer m.unlock()
	if m.sched != nil {
		m.sched.noticed()
		return
	}
	m.releaseHeld()
	m.settle()
}
