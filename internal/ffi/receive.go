//go:build linux && (amd64 || arm64)

package ffi

import (
	"errors"
	"sync"
	"sync/atomic"
)

// The tag of an entry's data begins at tagShift; the rest is the receiver's.
const (
	tagShift = 56
	dataMask = 1<<tagShift - 1
)

// receiver is where the calls that carry one tag go.
type receiver struct {
	host   func(data uint64)
	status func(data uint64, r int32)
}

// receivers is indexed by tag. Entries read it without a lock; index 0 stays
// empty, so that plain addresses and small numbers reach nobody.
var receivers [256]atomic.Pointer[receiver]

// receiversMu guards who owns which tag, and lastTag, the one given out last.
var (
	receiversMu sync.Mutex
	lastTag     uint64
)

// Receive routes calls of the entries to host ([HostEntry]) and status
// ([StatusEntry]). The data that C passes to an entry must be tag|data, with
// data below 1<<56; the functions get data without the tag. tag is never 0 and
// is already in place: it has only its top byte set.
//
// The functions run on the thread that called the entry, several at once if
// several threads do, and C waits until they return. They must return normally:
// on a thread that Go did not create, a panic or [runtime.Goexit] that leaves
// them ends the program.
//
// stop ends the routing: a call that arrives later is ignored, one that runs is
// not waited for. Tags are reused in turn, so after 254 further Receives a late
// call may reach a new owner of the tag; that owner must be able to tell data
// it never handed out. At most 255 tags exist at a time; Receive fails when
// none is left.
func Receive(host func(data uint64), status func(data uint64, r int32)) (tag uint64, stop func(), err error) {
	receiversMu.Lock()
	defer receiversMu.Unlock()
	for range len(receivers) - 1 {
		lastTag = lastTag%uint64(len(receivers)-1) + 1
		slot := &receivers[lastTag]
		if slot.Load() != nil {
			continue
		}
		r := &receiver{host, status}
		slot.Store(r)
		return lastTag << tagShift, func() { slot.CompareAndSwap(r, nil) }, nil
	}
	return 0, nil, errors.New("ffi: all 255 callback tags are in use")
}
