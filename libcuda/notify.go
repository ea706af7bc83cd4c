//go:build linux && (amd64 || arm64)

package libcuda

import (
	"time"

	"github.com/hostlaunch/cuda/internal/driver"
)

// NotifyEvent implements driver.Events. The event is asked again and again, by the service; see patience.
func (nv *nvidia) NotifyEvent(ctx driver.Context, e driver.Event, fn func(driver.Result)) driver.Result {
	start := time.Now()
	t := &task{
		due: start,
		look: func(now time.Time) (time.Duration, bool) {
			r := nv.EventQuery(ctx, e)
			if r == driver.ErrorNotReady {
				return patience(now.Sub(start)), false
			}
			fn(r)
			return 0, true
		},
		drop: func() { fn(driver.ErrorDeinitialized) },
	}
	if !nv.service.add(nv, t) {
		return driver.ErrorDeinitialized
	}
	return driver.Success
}

// patience is how long to leave an event alone that has been waited for so long: not at all in the beginning, then an eighth
// of the time so far, so that the wait is seldom longer than it must be by more than that.
func patience(waited time.Duration) time.Duration {
	const spin, least, most = 20 * time.Microsecond, 10 * time.Microsecond, time.Millisecond
	if waited < spin {
		return 0
	}
	return min(max(waited/8, least), most)
}
