package softcuda

import (
	"encoding/binary"

	"github.com/hostlaunch/cuda/internal/driver"
)

// Multiprocessors of a device, and how they can be split: as on GPUs of compute capability 9.0, but fewer of them. Nothing of
// the engine runs on multiprocessors, so a green context only keeps the books of them.
const (
	multiprocessors = 16
	smGranularity   = 8 // smallest part, and what its size is a multiple of
	smFine          = 2 // both, where coscheduling is ignored
)

// green is a green context: the device's primary context with some of its multiprocessors.
type green struct {
	ctx *context       // the primary context, retained
	raw driver.Context // what stands for it as a context
	sms uint32
}

// resource is a DevResource with count multiprocessors of device d. Internal keeps the device, and from which split it comes.
func resource(d driver.Device, count, granularity uint32, split uint64) driver.DevResource {
	res := driver.DevResource{Type: driver.DevResourceSM, SM: driver.SMResource{Count: count, MinPartitionSize: granularity, CoscheduledAligned: granularity}}
	binary.NativeEndian.PutUint32(res.Internal[:], uint32(d))
	binary.NativeEndian.PutUint64(res.Internal[8:], split)
	return res
}

// origin is the device that a resource is of, and the split that made it; 0: none.
func origin(res *driver.DevResource) (d driver.Device, split uint64) {
	return driver.Device(binary.NativeEndian.Uint32(res.Internal[:])), binary.NativeEndian.Uint64(res.Internal[8:])
}

// DeviceGetDevResource implements driver.GreenContexts.
func (m *machine) DeviceGetDevResource(i driver.Device, typ uint32) (driver.DevResource, driver.Result) {
	if _, r := m.device(i); r != driver.Success {
		return driver.DevResource{}, r
	}
	if typ != driver.DevResourceSM {
		return driver.DevResource{}, driver.ErrorInvalidResourceType
	}
	return resource(i, multiprocessors, smGranularity, 0), driver.Success
}

// DevSmResourceSplitByCount implements driver.GreenContexts.
func (m *machine) DevSmResourceSplitByCount(in *driver.DevResource, groups int, flags, minCount uint32) (parts []driver.DevResource, rest driver.DevResource, r driver.Result) {
	d, split := origin(in)
	switch {
	case in.Type != driver.DevResourceSM:
		return nil, rest, driver.ErrorInvalidResourceType
	case flags&^(driver.SMSplitIgnoreCoscheduling|driver.SMSplitMaxClusterSize) != 0, minCount > in.SM.Count, groups < 1:
		return nil, rest, driver.ErrorInvalidValue
	case split != 0: // parts cannot be split again
		return nil, rest, driver.ErrorInvalidResourceConfiguration
	}
	unit := uint32(smGranularity)
	if flags&driver.SMSplitIgnoreCoscheduling != 0 {
		unit = smFine
	}
	size := max((minCount+unit-1)/unit*unit, unit)
	n := min(uint32(groups), in.SM.Count/size)
	if n == 0 {
		return nil, rest, driver.ErrorInvalidResourceConfiguration
	}
	m.mu.Lock()
	defer m.unlock()
	id := uint64(m.handle())
	for range n {
		parts = append(parts, resource(d, size, unit, id))
	}
	return parts, resource(d, in.SM.Count-n*size, unit, id), driver.Success
}

// DevResourceGenerateDesc implements driver.GreenContexts.
func (m *machine) DevResourceGenerateDesc(resources []driver.DevResource) (driver.ResourceDesc, driver.Result) {
	if len(resources) == 0 {
		return 0, driver.ErrorInvalidValue
	}
	sum := resources[0]
	d, split := origin(&sum)
	for i := range resources {
		of, from := origin(&resources[i])
		switch {
		case resources[i].Type != driver.DevResourceSM, resources[i].SM.Count == 0:
			return 0, driver.ErrorInvalidResourceType
		case i > 0 && (of != d || from != split || split == 0):
			return 0, driver.ErrorInvalidResourceConfiguration
		case i > 0:
			sum.SM.Count += resources[i].SM.Count
		}
	}
	m.mu.Lock()
	defer m.unlock()
	desc := driver.ResourceDesc(m.handle())
	m.descs[desc] = sum
	return desc, driver.Success
}

// GreenCtxCreate implements driver.GreenContexts.
func (m *machine) GreenCtxCreate(desc driver.ResourceDesc, i driver.Device, flags uint32) (driver.GreenContext, driver.Result) {
	m.mu.Lock()
	sum, ok := m.descs[desc]
	m.unlock()
	if of, _ := origin(&sum); !ok || of != i || flags != driver.GreenCtxDefaultStream {
		return 0, driver.ErrorInvalidValue
	}
	raw, r := m.DevicePrimaryCtxRetain(i)
	if r != driver.Success {
		return 0, r
	}
	m.mu.Lock()
	defer m.unlock()
	g := &green{ctx: m.contexts[raw], raw: driver.Context(m.handle()), sms: sum.SM.Count}
	handle := driver.GreenContext(m.handle())
	m.greens[handle], m.contexts[g.raw] = g, g.ctx
	return handle, driver.Success
}

// GreenCtxDestroy implements driver.GreenContexts. Streams made in it can no longer be used, nor destroyed.
func (m *machine) GreenCtxDestroy(handle driver.GreenContext) driver.Result {
	m.mu.Lock()
	g := m.greens[handle]
	if g != nil {
		delete(m.greens, handle)
		delete(m.contexts, g.raw)
	}
	m.unlock()
	if g == nil {
		return driver.ErrorInvalidContext
	}
	return m.DevicePrimaryCtxRelease(g.ctx.dev.ordinal)
}

// GreenCtxGetDevResource implements driver.GreenContexts.
func (m *machine) GreenCtxGetDevResource(handle driver.GreenContext, typ uint32) (driver.DevResource, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	g := m.greens[handle]
	switch {
	case g == nil:
		return driver.DevResource{}, driver.ErrorInvalidContext
	case typ != driver.DevResourceSM:
		return driver.DevResource{}, driver.ErrorInvalidResourceType
	}
	return resource(g.ctx.dev.ordinal, g.sms, smGranularity, 0), driver.Success
}

// CtxFromGreenCtx implements driver.GreenContexts.
func (m *machine) CtxFromGreenCtx(handle driver.GreenContext) (driver.Context, driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	g := m.greens[handle]
	if g == nil {
		return 0, driver.ErrorInvalidContext
	}
	return g.raw, g.ctx.lost
}
