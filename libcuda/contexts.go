//go:build linux && (amd64 || arm64)

package libcuda

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hostlaunch/cuda/internal/driver"
)

// contexts knows the contexts of a driver. The zero contexts is empty and ready.
type contexts struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*watched] // replaced, never changed; stored under mu
}

// get returns ctx's entry, made if need be.
func (c *contexts) get(ctx driver.Context) *watched {
	if w := c.find(ctx); w != nil {
		return w
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(ctx)
}

// retain counts a primary context.
func (c *contexts) retain(ctx driver.Context, d driver.Device) *watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.add(ctx)
	w.device, w.retained = d, w.retained+1
	return w
}

// release counts it back. It returns the entry, taken out, if that was the last.
func (c *contexts) release(d driver.Device) *watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.all() {
		if w.device != d || w.retained == 0 {
			continue
		}
		if w.retained--; w.retained > 0 {
			return nil
		}
		list := slices.DeleteFunc(slices.Clone(c.all()), func(x *watched) bool { return x == w })
		c.list.Store(&list)
		return w
	}
	return nil
}

// remove takes ctx's entry out and returns it, or nil if there is none.
func (c *contexts) remove(ctx driver.Context) *watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.find(ctx)
	if w != nil {
		list := slices.DeleteFunc(slices.Clone(c.all()), func(x *watched) bool { return x == w })
		c.list.Store(&list)
	}
	return w
}

// clear takes all out.
func (c *contexts) clear() []*watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.all()
	c.list.Store(nil)
	return list
}

func (c *contexts) all() []*watched {
	if list := c.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (c *contexts) find(ctx driver.Context) *watched {
	for _, w := range c.all() {
		if w.ctx == ctx {
			return w
		}
	}
	return nil
}

// add returns ctx's entry, made if need be; c.mu is held.
func (c *contexts) add(ctx driver.Context) *watched {
	if w := c.find(ctx); w != nil {
		return w
	}
	w := &watched{ctx: ctx}
	w.idle = sync.NewCond(&w.mu)
	list := append(slices.Clone(c.all()), w)
	c.list.Store(&list)
	return w
}
