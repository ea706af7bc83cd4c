package cuda

import (
	"encoding/binary"
	"math"

	"github.com/hostlaunch/cuda/internal/driver"
)

// SyncPolicy says how a thread waits for work that is done by a device.
type SyncPolicy uint32

// Synchronization policies, by the driver's numbers.
const (
	SyncAuto  SyncPolicy = 1 // the driver chooses
	SyncSpin  SyncPolicy = 2 // the thread spins: soonest to know, and a core is busy
	SyncYield SyncPolicy = 3 // the thread spins and lets others run
	SyncBlock SyncPolicy = 4 // the thread sleeps
)

// AccessProperty says how lasting memory accesses are in a device's cache.
type AccessProperty uint32

// Access properties, by the driver's numbers.
const (
	AccessNormal     AccessProperty = 0
	AccessStreaming  AccessProperty = 1 // less likely to stay in the cache
	AccessPersisting AccessProperty = 2 // more likely to stay; for Hit only
)

// AccessPolicyWindow is a range of device memory whose accesses by kernels get cache properties. The zero value is none.
type AccessPolicyWindow struct {
	Base     DevicePtr // where it begins; the driver may align it
	Bytes    int       // its size, up to the device's limit
	HitRatio float32   // which part of the accesses gets Hit, from 0 to 1; the rest gets Miss
	Hit      AccessProperty
	Miss     AccessProperty // AccessNormal or AccessStreaming
}

// MemSyncDomain is a memory synchronization domain: memory fences of kernels in one do not wait for writes of the other.
type MemSyncDomain uint32

// Memory synchronization domains, by the driver's numbers.
const (
	DomainDefault MemSyncDomain = 0
	DomainRemote  MemSyncDomain = 1
)

// MemSyncDomainMap says which of the device's domains stand for the two logical ones.
type MemSyncDomainMap struct{ Default, Remote uint8 }

// SynchronizationPolicy is how a thread waits for s. cuStreamGetAttribute.
func (s *Stream) SynchronizationPolicy() (SyncPolicy, error) {
	v, err := s.attribute("Stream.SynchronizationPolicy", driver.StreamAttrSynchronizationPolicy)
	return SyncPolicy(v.Uint32()), err
}

// SetSynchronizationPolicy has threads wait for later work of s in the way p says (CONTRACT ST-07). An unknown p is
// ErrInvalidValue. cuStreamSetAttribute.
func (s *Stream) SetSynchronizationPolicy(p SyncPolicy) error {
	return s.setAttribute("Stream.SetSynchronizationPolicy", driver.StreamAttrSynchronizationPolicy, func(op string, v *driver.AttrValue) error {
		if p < SyncAuto || p > SyncBlock {
			return failf(op, ErrInvalidValue, "policy %d is unknown; use SyncAuto, SyncSpin, SyncYield or SyncBlock", p)
		}
		v.PutUint32(uint32(p))
		return nil
	})
}

// SetPriority gives later work of s another priority, which must be in the range of Context.StreamPriorities, else it is
// ErrInvalidValue (CONTRACT ST-02, ST-07). cuStreamSetAttribute.
func (s *Stream) SetPriority(p int) error {
	return s.setAttribute("Stream.SetPriority", driver.StreamAttrPriority, func(op string, v *driver.AttrValue) error {
		least, greatest, r := s.driver().CtxGetStreamPriorityRange(s.ctx.raw)
		if r != driver.Success {
			return s.ctx.result(op, r)
		}
		if p < int(greatest) || p > int(least) {
			return failf(op, ErrInvalidValue, "priority %d is out of the range %d to %d; use one in range", p, greatest, least)
		}
		v.PutUint32(uint32(int32(p)))
		return nil
	})
}

// AccessPolicyWindow is the window whose accesses by kernels of s get cache properties. cuStreamGetAttribute.
func (s *Stream) AccessPolicyWindow() (AccessPolicyWindow, error) {
	v, err := s.attribute("Stream.AccessPolicyWindow", driver.StreamAttrAccessPolicyWindow)
	return AccessPolicyWindow{
		Base:     DevicePtr(binary.NativeEndian.Uint64(v[0:])),
		Bytes:    int(binary.NativeEndian.Uint64(v[8:])),
		HitRatio: math.Float32frombits(binary.NativeEndian.Uint32(v[16:])),
		Hit:      AccessProperty(binary.NativeEndian.Uint32(v[20:])),
		Miss:     AccessProperty(binary.NativeEndian.Uint32(v[24:])),
	}, err
}

// SetAccessPolicyWindow sets the window for later kernels of s. The memory stays the program's: keep it open meanwhile. A
// ratio, size or property out of range is ErrInvalidValue (CONTRACT ST-07). cuStreamSetAttribute.
func (s *Stream) SetAccessPolicyWindow(w AccessPolicyWindow) error {
	return s.setAttribute("Stream.SetAccessPolicyWindow", driver.StreamAttrAccessPolicyWindow, func(op string, v *driver.AttrValue) error {
		if err := s.checkWindow(op, w); err != nil {
			return err
		}
		binary.NativeEndian.PutUint64(v[0:], uint64(w.Base))
		binary.NativeEndian.PutUint64(v[8:], uint64(w.Bytes))
		binary.NativeEndian.PutUint32(v[16:], math.Float32bits(w.HitRatio))
		binary.NativeEndian.PutUint32(v[20:], uint32(w.Hit))
		binary.NativeEndian.PutUint32(v[24:], uint32(w.Miss))
		return nil
	})
}

func (s *Stream) checkWindow(op string, w AccessPolicyWindow) error {
	most, r := s.driver().DeviceGetAttribute(driver.AttrMaxAccessPolicyWindowSize, s.ctx.device)
	switch {
	case r != driver.Success:
		return s.ctx.result(op, r)
	case w.Bytes < 0 || w.Bytes > most:
		return failf(op, ErrInvalidValue, "Bytes %d: this device's windows have at most %d", w.Bytes, most)
	case !(w.HitRatio >= 0 && w.HitRatio <= 1):
		return failf(op, ErrInvalidValue, "HitRatio %v: it must be from 0 to 1", w.HitRatio)
	case w.Hit > AccessPersisting:
		return failf(op, ErrInvalidValue, "Hit %d is unknown; use AccessNormal, AccessStreaming or AccessPersisting", w.Hit)
	case w.Miss > AccessStreaming:
		return failf(op, ErrInvalidValue, "Miss %d: it can only be AccessNormal or AccessStreaming", w.Miss)
	}
	return nil
}

// MemSyncDomain is the domain that kernels of s are launched in. cuStreamGetAttribute.
func (s *Stream) MemSyncDomain() (MemSyncDomain, error) {
	v, err := s.attribute("Stream.MemSyncDomain", driver.StreamAttrMemSyncDomain)
	return MemSyncDomain(v.Uint32()), err
}

// SetMemSyncDomain sets the domain that later kernels of s are launched in (CONTRACT ST-07). cuStreamSetAttribute.
func (s *Stream) SetMemSyncDomain(d MemSyncDomain) error {
	return s.setAttribute("Stream.SetMemSyncDomain", driver.StreamAttrMemSyncDomain, func(op string, v *driver.AttrValue) error {
		if d > DomainRemote {
			return failf(op, ErrInvalidValue, "domain %d is unknown; use DomainDefault or DomainRemote", d)
		}
		v.PutUint32(uint32(d))
		return nil
	})
}

// MemSyncDomainMap says which of the device's domains kernels of s use. cuStreamGetAttribute.
func (s *Stream) MemSyncDomainMap() (MemSyncDomainMap, error) {
	v, err := s.attribute("Stream.MemSyncDomainMap", driver.StreamAttrMemSyncDomainMap)
	return MemSyncDomainMap{Default: v[0], Remote: v[1]}, err
}

// SetMemSyncDomainMap sets which of the device's domains later kernels of s use; a domain that the device does not have is
// ErrInvalidValue (CONTRACT ST-07). cuStreamSetAttribute.
func (s *Stream) SetMemSyncDomainMap(m MemSyncDomainMap) error {
	return s.setAttribute("Stream.SetMemSyncDomainMap", driver.StreamAttrMemSyncDomainMap, func(op string, v *driver.AttrValue) error {
		n, r := s.driver().DeviceGetAttribute(driver.AttrMemSyncDomainCount, s.ctx.device)
		if r != driver.Success {
			return s.ctx.result(op, r)
		}
		if int(m.Default) >= n || int(m.Remote) >= n {
			return failf(op, ErrInvalidValue, "domains %d and %d: this device has %d, from 0 on", m.Default, m.Remote, n)
		}
		v[0], v[1] = m.Default, m.Remote
		return nil
	})
}

// CopyAttributes gives s the attributes of from, which must be of the same context, else it is ErrInvalidContext (CONTRACT
// ST-07). cuStreamCopyAttributes.
func (s *Stream) CopyAttributes(from *Stream) error {
	const op = "Stream.CopyAttributes"
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	if err := from.beginAs(op, "from"); err != nil {
		return err
	}
	defer from.end()
	if from.ctx != s.ctx {
		return failf(op, ErrInvalidContext, "from belongs to %s and the stream to %s; attributes are copied within one context", from.ctx.describe(), s.ctx.describe())
	}
	s.alter()
	return s.ctx.result(op, s.driver().StreamCopyAttributes(s.ctx.raw, s.raw, from.raw))
}

func (s *Stream) attribute(op string, attr int32) (driver.AttrValue, error) {
	return streamValue(s, op, func(d driver.Driver, c driver.Context, raw driver.Stream) (driver.AttrValue, driver.Result) {
		return d.StreamGetAttribute(c, raw, attr)
	})
}

// setAttribute sets an attribute to the value that fill makes, unless fill refuses.
func (s *Stream) setAttribute(op string, attr int32, fill func(op string, v *driver.AttrValue) error) error {
	if err := s.begin(op); err != nil {
		return err
	}
	defer s.end()
	var v driver.AttrValue
	if err := fill(op, &v); err != nil {
		return err
	}
	s.alter()
	return s.ctx.resultf(op, s.driver().StreamSetAttribute(s.ctx.raw, s.raw, attr, v), "the driver refused the value")
}

// alter notes that s is no longer as it was made.
func (s *Stream) alter() {
	if s.altered != nil {
		s.altered.Store(true)
	}
}
