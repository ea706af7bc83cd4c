//go:build linux && (amd64 || arm64) && cgo && !hostlaunch_purego

package ffi

/*
#cgo noescape cross

#include <stdint.h>

// The head of Go's Call.
struct call {
	uintptr_t get, set, ctx, also, fn, n, args[12];
};

typedef uintptr_t word;
typedef int function6(word, word, word, word, word, word);
typedef int function12(word, word, word, word, word, word, word, word, word, word, word, word);
typedef int get_current(void **);
typedef int set_current(void *);

static int invoke(const struct call *c) {
	const word *a = c->args;
	if (c->n <= 6)
		return ((function6 *)c->fn)(a[0], a[1], a[2], a[3], a[4], a[5]);
	return ((function12 *)c->fn)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
}

static int cross(const struct call *c) {
	if (!c->ctx) return invoke(c);

	void *former = 0;
	int result = ((get_current *)c->get)(&former);
	if (result) return result;
	if ((word)former == c->ctx || (word)former == c->also) return invoke(c);

	result = ((set_current *)c->set)((void *)c->ctx);
	if (result) return result;
	result = invoke(c);
	((set_current *)c->set)(former);
	return result;
}
*/
import "C"

import "unsafe"

// Build names this build of the package.
const Build = "cgo"

// C's view of a Call ends with its arguments, where Go's has them.
var _ = [1]struct{}{}[unsafe.Offsetof(Call{}.Args)-unsafe.Offsetof(C.struct_call{}.args)]

func cross(c *Call) int32 {
	return int32(C.cross((*C.struct_call)(unsafe.Pointer(c))))
}
