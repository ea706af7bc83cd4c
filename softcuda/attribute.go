package softcuda

import (
	"encoding/binary"
	"math"

	"github.com/hostlaunch/cuda/internal/driver"
)

// attributesOf are a stream's attributes. They are hints for a GPU: here they are only kept.
type attributesOf map[int32]driver.AttrValue

// defaultAttributes are those of a new stream. It is never written: set makes a copy.
var defaultAttributes = attributesOf{
	driver.StreamAttrAccessPolicyWindow:    {},
	driver.StreamAttrSynchronizationPolicy: {0: 1}, // CU_SYNC_POLICY_AUTO
	driver.StreamAttrMemSyncDomainMap:      {0: 0, 1: 1},
	driver.StreamAttrMemSyncDomain:         {},
}

// Limits of attributes, those of an H200.
const (
	maxWindow   = 128 << 20
	syncDomains = 4
)

// StreamGetAttribute implements driver.StreamAttributes.
func (m *machine) StreamGetAttribute(ctx driver.Context, raw driver.Stream, attr int32) (v driver.AttrValue, r driver.Result) {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, raw)
	if r != driver.Success {
		return v, r
	}
	if attr == driver.StreamAttrPriority {
		v.PutUint32(uint32(s.priority))
		return v, driver.Success
	}
	v, ok := s.attrs[attr]
	if !ok {
		return v, driver.ErrorInvalidValue
	}
	return v, driver.Success
}

// StreamSetAttribute implements driver.StreamAttributes.
func (m *machine) StreamSetAttribute(ctx driver.Context, raw driver.Stream, attr int32, v driver.AttrValue) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	s, r := m.stream(ctx, raw)
	if r != driver.Success {
		return r
	}
	if !validAttribute(attr, &v) {
		return driver.ErrorInvalidValue
	}
	if attr == driver.StreamAttrPriority {
		s.priority = int32(v.Uint32())
		return driver.Success
	}
	s.attrs = s.attrs.with(attr, v)
	return driver.Success
}

func (a attributesOf) with(attr int32, v driver.AttrValue) attributesOf {
	b := attributesOf{attr: v}
	for k, w := range a {
		if k != attr {
			b[k] = w
		}
	}
	return b
}

// validAttribute reports whether there is such an attribute, and it can have this value.
func validAttribute(attr int32, v *driver.AttrValue) bool {
	switch attr {
	case driver.StreamAttrAccessPolicyWindow:
		const streaming, persisting = 1, 2
		bytes, ratio := binary.NativeEndian.Uint64(v[8:]), math.Float32frombits(binary.NativeEndian.Uint32(v[16:]))
		hit, miss := binary.NativeEndian.Uint32(v[20:]), binary.NativeEndian.Uint32(v[24:])
		return bytes <= maxWindow && ratio >= 0 && ratio <= 1 && hit <= persisting && miss <= streaming
	case driver.StreamAttrSynchronizationPolicy:
		return v.Uint32() >= 1 && v.Uint32() <= 4
	case driver.StreamAttrPriority:
		p := int32(v.Uint32())
		return p >= greatestPriority && p <= leastPriority
	case driver.StreamAttrMemSyncDomainMap:
		return v[0] < syncDomains && v[1] < syncDomains
	case driver.StreamAttrMemSyncDomain:
		return v.Uint32() <= 1
	}
	return false
}

// StreamCopyAttributes implements driver.StreamAttributes.
func (m *machine) StreamCopyAttributes(ctx driver.Context, dst, src driver.Stream) driver.Result {
	m.mu.Lock()
	defer m.unlock()
	to, r := m.stream(ctx, dst)
	if r != driver.Success {
		return r
	}
	from, r := m.stream(ctx, src)
	if r != driver.Success {
		return r
	}
	if to.ctx != from.ctx {
		return driver.ErrorInvalidContext
	}
	to.attrs, to.priority = from.attrs, from.priority
	return driver.Success
}
