package driver

import (
	"sync/atomic"
	"time"
)

// Stamper is what a Driver may implement besides: telling by the host's clock when a stream comes to a place, for less than events cost.
type Stamper interface {
	// StreamStamp has the time since since stored in at when everything queued on s so far is done, and before anything queued later
	// begins. at is not touched if the context fails first, nor if StreamStamp answers anything but Success. On a stream that captures
	// it is ErrorStreamCaptureUnsupported, and the capture stays valid.
	StreamStamp(ctx Context, s Stream, since time.Time, at *atomic.Int64) Result
}
