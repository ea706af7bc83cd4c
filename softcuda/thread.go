package softcuda

import "github.com/hostlaunch/cuda/internal/native"

// The software device's threads are goroutines: package cuda locks a goroutine to its thread wherever CUDA ties something to
// a thread, so the two are one there.

// manyThreads is how many per-thread streams a context keeps before it forgets idle ones. Nothing tells when a goroutine has
// ended, and an idle stream is as good as a new one, but for its id.
const manyThreads = 64

// threadStream is the per-thread default stream of the calling goroutine. mu is held.
func (m *machine) threadStream(c *context) *stream {
	id := goroutineID()
	s := c.threads[id]
	if s == nil {
		if len(c.threads) >= manyThreads {
			for id, idle := range c.threads {
				if idle.first == nil {
					delete(c.threads, id)
				}
			}
		}
		s = m.newStream(c, 0, 0)
		c.threads[id] = s
	}
	return s
}

// goroutineID is the calling goroutine's number. Only what is tied to a thread asks for it.
func goroutineID() uint64 { return native.GoroutineID() }
