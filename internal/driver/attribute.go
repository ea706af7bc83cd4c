package driver

import "encoding/binary"

// Stream attributes, by the driver's numbers (CUstreamAttrID).
const (
	StreamAttrAccessPolicyWindow    int32 = 1
	StreamAttrSynchronizationPolicy int32 = 3
	StreamAttrPriority              int32 = 8
	StreamAttrMemSyncDomainMap      int32 = 9
	StreamAttrMemSyncDomain         int32 = 10
)

// Device attributes that bound stream attributes.
const (
	AttrMaxPersistingL2CacheSize  int32 = 108
	AttrMaxAccessPolicyWindowSize int32 = 109
	AttrMemSyncDomainCount        int32 = 126
)

// AttrValue is a CUstreamAttrValue: 64 bytes, laid out as the attribute wants.
type AttrValue [64]byte

// Uint32 is the value as one number: a policy, a priority, a domain.
func (v *AttrValue) Uint32() uint32 { return binary.NativeEndian.Uint32(v[:]) }

// PutUint32 makes the value one number.
func (v *AttrValue) PutUint32(n uint32) { binary.NativeEndian.PutUint32(v[:], n) }

// StreamAttributes are the attributes of streams.
type StreamAttributes interface {
	StreamGetAttribute(ctx Context, s Stream, attr int32) (AttrValue, Result)
	StreamSetAttribute(ctx Context, s Stream, attr int32, v AttrValue) Result
	StreamCopyAttributes(ctx Context, dst, src Stream) Result
}
