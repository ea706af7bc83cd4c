package cuda

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
)

// narrow is a driver whose device has memory operations of 32 bits only, and no NOR. It is asked for that once.
type narrow struct {
	refusing
	memory [4]uint64
	asked  int
}

func (n *narrow) DeviceGetAttribute(attr int32, _ driver.Device) (int, driver.Result) {
	if attr == driver.AttrCanUse64BitStreamMemOps {
		n.asked++
	}
	return 0, 0
}
func (n *narrow) MemHostAlloc(driver.Context, uintptr, uint32) (unsafe.Pointer, driver.Result) {
	return unsafe.Pointer(&n.memory), 0
}
func (*narrow) MemFreeHost(driver.Context, unsafe.Pointer) driver.Result { return 0 }
func (*narrow) StreamWaitValue32(driver.Context, driver.Stream, driver.DevicePtr, uint32, uint32) driver.Result {
	return 0
}

// ST-12: what the device cannot do is refused by name, before the driver is asked.
func TestMemOpsNotSupported(t *testing.T) {
	impl := &narrow{}
	s := refusingStreamOf(t, impl)
	p, err := s.ctx.AllocPinned(32)
	if err != nil {
		t.Fatal(err)
	}
	at := p.Word(0)
	for words, err := range map[string]error{
		"no memory operations of 64 bits; use Write64's": s.WriteValue64(at, 1),
		"no memory operations of 64 bits; use Wait64's":  s.WaitValue64(at, ValueEQ, 1),
		"64 bits":                     s.Batch(Wait32(at, ValueEQ, 0), Write64(at, 1)),
		"ValueNOR; use another":       s.WaitValue32(at, ValueNOR, 1),
		"cannot flush remote writes":  s.WaitValue32(at, ValueGEQ|FlushRemote, 1),
		"cannot flush remote writes;": s.Batch(FlushWrites()),
	} {
		if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v; want ErrNotSupported with %q", err, words)
		}
	}
	if err := s.WaitValue32(at, ValueAND, 1); err != nil {
		t.Error(err)
	}
	if impl.asked != 1 {
		t.Errorf("asked %d times", impl.asked)
	}
}

func refusingStreamOf(t *testing.T, impl driver.Driver) *Stream {
	t.Helper()
	return deviceOf(t, impl).DefaultStream()
}
