package softcuda

import "time"

// Cost says how long operations take on a software device (Options.Cost), so that the times of events are plausible and tests can
// tell what overlaps. Each field that is 0 or below takes no time.
//
// A stream's operations take place one behind the other, those of different streams beside each other; but each of a device's two
// copy engines, one for each way between host and device, does one copy at a time, and a context one host function. Events tell
// the times of this model, exactly: what the computer itself takes for a copy, or sleeps too long, does not count. What a kernel's
// Go function or a host function takes itself comes on top. The device waits for as long as an operation takes, and does it at the end
// of that time; so the program sees the time pass. In a testing/synctest bubble it is virtual.
//
// With a Seed the device does not wait. It does one operation at a time, in the order that it draws; only its clock, which events and
// Launch.Now tell, goes by the model, in which operations overlap as they do without a Seed. What the program queues counts from when it
// has last waited for something.
//
// Marks, write-values, wait-values and the launch of a graph take no time, nor does a call of the program.
type Cost struct {
	CopyLatency   time.Duration                 // each copy or memset, beside its bytes
	ToDevice      float64                       // bytes per second that a copy from host to device moves
	ToHost        float64                       // bytes per second that a copy from device to host moves
	OnDevice      float64                       // bytes per second that a copy within or between devices moves, or a memset writes
	KernelLatency time.Duration                 // each kernel, beside Kernel
	Kernel        func(l *Launch) time.Duration // a kernel. It may ask for arguments (Arg), not for memory (Slice). Called from any goroutine
	HostFunction  time.Duration                 // each host function or callback, before it is called
}

// H200 is what things take on an NVIDIA H200: the rates of copies of pinned memory over PCIe, and how far apart two kernels are, with and
// without a host function between them, were measured on one. CopyLatency and OnDevice are estimates, the latter from the bandwidth of
// its memory. What its kernels take the program says (Cost.Kernel).
func H200() *Cost {
	return &Cost{
		CopyLatency:   2 * time.Microsecond,
		ToDevice:      54.5e9,
		ToHost:        55.2e9,
		OnDevice:      2e12,
		KernelLatency: 1500 * time.Nanosecond,
		HostFunction:  40 * time.Microsecond,
	}
}

// moving is how long a transfer takes.
func (c *Cost) moving(l load) time.Duration {
	rate := [...]float64{onDevice: c.OnDevice, toDevice: c.ToDevice, toHost: c.ToHost}[l.way]
	d := max(c.CopyLatency, 0)
	if rate > 0 {
		d += time.Duration(float64(l.bytes) / rate * float64(time.Second))
	}
	return d
}

// running is how long a kernel takes.
func (c *Cost) running(l *Launch) time.Duration {
	d := max(c.KernelLatency, 0)
	if c.Kernel != nil {
		d += max(c.Kernel(l), 0)
	}
	return d
}
