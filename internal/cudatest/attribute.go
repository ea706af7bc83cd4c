package cudatest

import (
	"math"

	"github.com/hostlaunch/cuda"
)

// attributeCases: stream attributes.
var attributeCases = []Case{
	{ID: "ST-07", Name: "defaults", Run: attributeDefaults},
	{ID: "ST-07", Name: "synchronization policy", Run: policyAttribute},
	{ID: "ST-07", Name: "priority", Run: priorityAttribute},
	{ID: "ST-07", Name: "access policy window", Run: windowAttribute},
	{ID: "ST-07", Name: "memory synchronization domains", Run: domainAttribute},
	{ID: "ST-07", Name: "values out of range", Run: attributesRefused},
	{ID: "ST-07", Name: "copy", Run: copyAttributes},
	{ID: "ST-07", Name: "copy between contexts", Run: copyAttributesAcross},
	{ID: "ST-07", Name: "default streams, as seen", Run: attributesOfDefaultStreams},
}

func attributeDefaults(t *T) {
	s := t.Stream()
	p, err := s.SynchronizationPolicy()
	t.OK(err)
	w, err := s.AccessPolicyWindow()
	t.OK(err)
	d, err := s.MemSyncDomain()
	t.OK(err)
	m, err := s.MemSyncDomainMap()
	t.OK(err)
	t.Logf("policy %d, window %+v, domain %d of %+v", p, w, d, m)
	if w.Bytes != 0 || d != cuda.DomainDefault {
		t.Error("want no window and the default domain")
	}
}

// policyAttribute also shows that waiting works under each policy.
func policyAttribute(t *T) {
	s := t.Stream()
	for _, p := range []cuda.SyncPolicy{cuda.SyncSpin, cuda.SyncYield, cuda.SyncBlock, cuda.SyncAuto} {
		t.OK(s.SetSynchronizationPolicy(p))
		if got, err := s.SynchronizationPolicy(); got != p || err != nil {
			t.Errorf("policy %d reads back as %d, %v", p, got, err)
		}
		ran := false
		t.Host(s, func() { ran = true })
		t.Sync(s)
		if !ran {
			t.Errorf("Sync under policy %d did not wait", p)
		}
	}
}

// priorityAttribute logs what reads back where a driver may differ: the documents do not say whether the creation priority,
// which Priority asks for, follows.
func priorityAttribute(t *T) {
	s := t.Stream()
	least, greatest, err := t.Device(0).StreamPriorities()
	t.OK(err)
	err = s.SetPriority(greatest)
	got, getErr := s.Priority()
	t.OK(getErr)
	t.Logf("SetPriority(%d): %v; Priority is %d", greatest, err, got)
	if t.Driver.Name() == "software" && (err != nil || got != greatest) {
		t.Error("want it to be set")
	}
	for _, p := range []int{least + 1, greatest - 1, 1 << 40} {
		t.Is(s.SetPriority(p), cuda.ErrInvalidValue)
	}
}

func windowAttribute(t *T) {
	s, b := t.Stream(), t.Buffer(1<<20)
	want := cuda.AccessPolicyWindow{Base: b.Ptr(), Bytes: b.Len(), HitRatio: 0.5, Hit: cuda.AccessPersisting, Miss: cuda.AccessStreaming}
	if err := s.SetAccessPolicyWindow(want); err != nil && t.Driver.Name() == "nvidia" {
		t.Logf("the driver refuses: %v", err) // under MIG, say
		return
	} else if err != nil {
		t.Fatal(err)
	}
	got, err := s.AccessPolicyWindow()
	t.OK(err)
	t.Logf("set %+v, reads back %+v", want, got)
	if got.HitRatio != want.HitRatio || got.Hit != want.Hit || got.Miss != want.Miss {
		t.Error("another window reads back")
	}
	t.OK(s.Memset(b, 1)) // later work goes on as before
	t.Sync(s)
	t.OK(s.SetAccessPolicyWindow(cuda.AccessPolicyWindow{}))
	if got, err := s.AccessPolicyWindow(); got.Bytes != 0 || err != nil {
		t.Errorf("after its removal: %+v, %v", got, err)
	}
}

func domainAttribute(t *T) {
	s := t.Stream()
	m, err := s.MemSyncDomainMap()
	t.OK(err)
	if err := s.SetMemSyncDomain(cuda.DomainRemote); err != nil && t.Driver.Name() == "nvidia" {
		t.Logf("the driver refuses: %v", err) // before Hopper there is one domain
		return
	} else if err != nil {
		t.Fatal(err)
	}
	if d, err := s.MemSyncDomain(); d != cuda.DomainRemote || err != nil {
		t.Errorf("domain reads back as %d, %v", d, err)
	}
	swapped := cuda.MemSyncDomainMap{Default: m.Remote, Remote: m.Default}
	t.OK(s.SetMemSyncDomainMap(swapped))
	if got, err := s.MemSyncDomainMap(); got != swapped || err != nil {
		t.Errorf("map %+v reads back as %+v, %v", swapped, got, err)
	}
	t.OK(s.Launch(t.Kernel("nothing"), one))
	t.Sync(s)
}

func attributesRefused(t *T) {
	s := t.Stream()
	for _, p := range []cuda.SyncPolicy{0, 5, 1 << 31} {
		t.Is(s.SetSynchronizationPolicy(p), cuda.ErrInvalidValue)
	}
	for _, w := range []cuda.AccessPolicyWindow{
		{Bytes: -1}, {Bytes: 1 << 50}, {HitRatio: -0.1}, {HitRatio: 1.1}, {HitRatio: float32(math.NaN())}, {Hit: 3}, {Miss: cuda.AccessPersisting}, {Miss: 7},
	} {
		t.Is(s.SetAccessPolicyWindow(w), cuda.ErrInvalidValue)
	}
	t.Is(s.SetMemSyncDomain(2), cuda.ErrInvalidValue)
	t.Is(s.SetMemSyncDomainMap(cuda.MemSyncDomainMap{Default: 255}), cuda.ErrInvalidValue)
	t.Is(s.SetMemSyncDomainMap(cuda.MemSyncDomainMap{Remote: 255}), cuda.ErrInvalidValue)
	if w, err := s.AccessPolicyWindow(); w.Bytes != 0 || err != nil {
		t.Errorf("a refused value was set: %+v, %v", w, err)
	}
}

func copyAttributes(t *T) {
	a, b := t.Stream(), t.Stream()
	t.OK(a.SetSynchronizationPolicy(cuda.SyncYield))
	t.OK(b.SetSynchronizationPolicy(cuda.SyncSpin))
	t.OK(b.CopyAttributes(a))
	t.OK(a.SetSynchronizationPolicy(cuda.SyncBlock)) // which is too late for b
	pa, err := a.SynchronizationPolicy()
	t.OK(err)
	pb, err := b.SynchronizationPolicy()
	t.OK(err)
	if pa != cuda.SyncBlock || pb != cuda.SyncYield {
		t.Errorf("policies %d and %d, want %d and %d", pa, pb, cuda.SyncBlock, cuda.SyncYield)
	}
	t.Is(b.CopyAttributes(nil), cuda.ErrInvalidValue)
	t.OK(a.Close())
	t.Is(b.CopyAttributes(a), cuda.ErrClosed)
}

func copyAttributesAcross(t *T) {
	s, other := t.Stream(), t.ContextStream(t.NewContext())
	t.Is(s.CopyAttributes(other), cuda.ErrInvalidContext)
	t.Is(other.CopyAttributes(s), cuda.ErrInvalidContext)
}

func attributesOfDefaultStreams(t *T) {
	legacy := t.Device(0).DefaultStream()
	p, err := legacy.SynchronizationPolicy()
	t.Logf("legacy stream: policy %d, %v; set: %v", p, err, legacy.SetSynchronizationPolicy(cuda.SyncAuto))
	t.OK(t.Device(0).WithThreadStream(func(s *cuda.Stream) error {
		p, err := s.SynchronizationPolicy()
		t.Logf("per-thread stream: policy %d, %v; set: %v", p, err, s.SetSynchronizationPolicy(cuda.SyncAuto))
		return nil
	}))
}
