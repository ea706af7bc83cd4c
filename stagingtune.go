package cuda

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// stagingTune are the sizes that staged copies go by. They were chosen by measurement (facts/h200.md, "Copies"); internal/bench
// sets others by stagingVariable, to measure again. Programs choose with Staging and Direct.
type stagingTune struct {
	// ring bounds the pinned memory of a context's own ring.
	ring uintptr
	// chunk is the largest slot: with 16 MiB the link is reached (54 of 55 GB/s), with 4 MiB nearly so, and with 1 MiB what each
	// chunk costs sets the rate; very large copies have slots of 32 MiB, since the call takes some microseconds for each. least is
	// the smallest chunk that a copy is cut into, and half of it for one that has no two: the first and last chunks are small,
	// since while they are copied the link has nothing to do.
	chunk, least uintptr
	// slots is how many chunks of a copy may be on their way at once: while one is copied by the processor, the link fills others. If
	// its stream is alone, a copy of up to 64 MiB has a slot for each, so that its device never waits for the workers: 16 MiB to the
	// host in 0.44 ms, with four slots in 0.74.
	slots int
	// threadsDown and threadsUp are how many goroutines copy at once, to the host and to the device, each is how many bytes make one
	// more worth waking, and part is what one takes at a time. One alone is slower than the driver's own pageable copy.
	threadsDown, threadsUp int
	each, part             uintptr
	// small is the largest source that is left to the driver, which says that it reads a pageable source of up to 64 KiB at
	// once and without waiting for the stream.
	small uintptr
	// streamDown and streamUp are the smallest copies that workers write past the caches.
	streamDown, streamUp uintptr
}

// stagingSegment is what the ring takes from the driver at a time; larger slots are taken one by one.
const stagingSegment = 16 << 20

const stagingVariable = "HOSTLAUNCH_STAGING"

// newStagingTune is what there is, changed by the environment: "chunk=8M,threads=4".
func newStagingTune() stagingTune {
	t := stagingTune{
		ring: 256 << 20, chunk: 32 << 20, least: 1 << 20, slots: 12,
		threadsDown: min(max(runtime.NumCPU()/2, 1), 8), threadsUp: min(max(runtime.NumCPU()/2, 1), 8),
		each: 256 << 10, part: 2 << 20, small: 64 << 10,
		streamDown: 512 << 10, streamUp: 512 << 10,
	}
	for field := range strings.SplitSeq(os.Getenv(stagingVariable), ",") {
		name, value, _ := strings.Cut(field, "=")
		n, ok := parseSize(value)
		if !ok {
			continue
		}
		switch name {
		case "ring":
			t.ring = roundUp(n, arenaUnit)
		case "chunk":
			t.chunk = roundUp(n, arenaUnit)
		case "least":
			t.least = roundUp(n, arenaUnit)
		case "slots":
			t.slots = int(min(n, 64))
		case "threads":
			t.threadsDown, t.threadsUp = int(min(n, 256)), int(min(n, 256))
		case "threadsup":
			t.threadsUp = int(min(n, 256))
		case "each":
			t.each = max(n, 1)
		case "part":
			t.part = n
		case "small":
			t.small = n
		case "down":
			t.streamDown = n
		case "up":
			t.streamUp = n
		}
	}
	return t
}

// parseSize reads a positive number, or 0, in bytes, KiB (K) or MiB (M).
func parseSize(s string) (uintptr, bool) {
	unit := uintptr(1)
	if rest, ok := strings.CutSuffix(s, "K"); ok {
		s, unit = rest, 1<<10
	} else if rest, ok := strings.CutSuffix(s, "M"); ok {
		s, unit = rest, 1<<20
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return uintptr(n) * unit, err == nil
}

// leastOf is the smallest chunk of a copy of n bytes.
func (t *stagingTune) leastOf(n uintptr) uintptr {
	return min(max(roundUp(n/2, arenaUnit), roundUp(t.least/2, arenaUnit)), t.least)
}

// slotFor is the size of the slots that a copy of n bytes would best have: an eighth of it, so that copying overlaps with the
// link from early on, and less of a large one.
func (t *stagingTune) slotFor(n uintptr) uintptr {
	if n <= t.least/2 {
		return roundUp(n, arenaUnit)
	}
	size := max(min(roundUp(n/8, arenaUnit), stagingSegment), roundUp(n/32, arenaUnit), t.leastOf(n))
	if size > t.least && size < stagingSegment { // a little less, so that they fill a segment
		size = stagingSegment / ((stagingSegment + size - 1) / size) / arenaUnit * arenaUnit
	}
	return min(size, t.chunk)
}

// leaseCap bounds what one stream takes of memory of which so much is free: three eighths if nobody else has any, then a
// sixteenth each for seven, and little when less than a quarter is left, which is then enough for a hundred more streams (CONTRACT CY-08).
func leaseCap(limit, free uintptr, alone bool) uintptr {
	switch {
	case alone:
		return limit / 8 * 3
	case free >= limit/4:
		return limit / 16
	}
	return limit / 512
}

// threads is how many workers copy at once in a direction.
func (t *stagingTune) threads(toHost bool) uintptr {
	if toHost {
		return uintptr(max(t.threadsDown, 1))
	}
	return uintptr(max(t.threadsUp, 1))
}

// workersFor is how many workers a copy of n bytes is worth.
func (t *stagingTune) workersFor(toHost bool, n uintptr) int {
	return int(min((n+t.each-1)/t.each, t.threads(toHost)))
}
