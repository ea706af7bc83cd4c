package cuda

import "github.com/hostlaunch/cuda/internal/driver"

// Device is a GPU, or a software device that stands for one. It embeds its primary context, so that streams, buffers and the
// rest are made on it directly: dev.NewStream().
type Device struct {
	*Context
	name string
}

// openDevice retains the primary context of device i. d.opening is held.
func (d *Driver) openDevice(op string, i driver.Device) (*Device, error) {
	name, r := d.drv.DeviceGetName(i)
	if r != driver.Success {
		return nil, NewError(op, r, "")
	}
	raw, r := d.drv.DevicePrimaryCtxRetain(i)
	if r != driver.Success {
		return nil, NewError(op, r, "no primary context for "+name)
	}
	pageable, _ := d.drv.DeviceGetAttribute(driver.AttrPageableMemoryAccess, i)
	concurrent, _ := d.drv.DeviceGetAttribute(driver.AttrConcurrentManagedAccess, i)
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.contexts[raw] // known already if a stream of it was borrowed
	if c == nil {
		c = &Context{drv: d, device: i, ordinal: int(i), raw: raw, pageable: pageable != 0, concurrent: concurrent != 0}
		d.contexts[raw] = c
	}
	c.release = func() { d.drv.DevicePrimaryCtxRelease(i) }
	dev := &Device{Context: c, name: name}
	d.devices[i] = dev
	return dev, nil
}

// Driver is what the device belongs to.
func (d *Device) Driver() *Driver { return d.drv }

// Ordinal is the device's number, as given to Driver.Device.
func (d *Device) Ordinal() int { return d.ordinal }

// Name is the device's name, as in "NVIDIA H200".
func (d *Device) Name() string { return d.name }

// String is the device's name.
func (d *Device) String() string { return d.name }

// TotalMemory is the size of the device's memory in bytes.
func (d *Device) TotalMemory() (uint64, error) {
	const op = "Device.TotalMemory"
	if err := d.drv.enter(op); err != nil {
		return 0, err
	}
	defer d.drv.leave()
	n, r := d.drv.drv.DeviceTotalMem(d.device)
	return n, d.result(op, r)
}

// ComputeCapability is the version of the device's instruction set, as in 9, 0.
func (d *Device) ComputeCapability() (major, minor int, err error) {
	const op = "Device.ComputeCapability"
	if err := d.drv.enter(op); err != nil {
		return 0, 0, err
	}
	defer d.drv.leave()
	major, r := d.drv.drv.DeviceGetAttribute(driver.AttrComputeCapabilityMajor, d.device)
	if r == driver.Success {
		minor, r = d.drv.drv.DeviceGetAttribute(driver.AttrComputeCapabilityMinor, d.device)
	}
	return major, minor, d.result(op, r)
}

// StreamPriorities is the range of stream priorities: least is the lowest priority and the greater number, greatest the
// highest and the smaller one. Both are 0 where priorities are not supported (CONTRACT ST-02).
func (c *Context) StreamPriorities() (least, greatest int, err error) {
	const op = "Context.StreamPriorities"
	if err := c.enter(op); err != nil {
		return 0, 0, err
	}
	defer c.leave()
	l, g, r := c.drv.drv.CtxGetStreamPriorityRange(c.raw)
	return int(l), int(g), c.result(op, r)
}
