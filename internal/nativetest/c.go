//go:build linux && (amd64 || arm64) && cgo && !hostlaunch_purego

package nativetest

/*
#include <stdint.h>

struct entry { uint64_t *log, value; };
struct gate { uint32_t open, entered; };
struct bytes { uint64_t *out, n; unsigned char bytes[]; };

static uintptr_t last, times;

static void add(void *data) { __atomic_fetch_add((uint64_t *)data, 1, __ATOMIC_SEQ_CST); }
static void append(void *data) {
	struct entry *e = data;
	e->log[1 + e->log[0]] = e->value;
	e->log[0]++;
}
static void note(void *data) {
	__atomic_store_n(&last, (uintptr_t)data, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&times, 1, __ATOMIC_SEQ_CST);
}
static void hold(void *data) {
	struct gate *g = data;
	__atomic_store_n(&g->entered, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&g->open, __ATOMIC_SEQ_CST)) {}
}
static void sum(void *data) {
	struct bytes *b = data;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < b->n; i++) sum += b->bytes[i];
	*b->out = sum;
}

static uintptr_t address_of(int which) {
	static void (*const functions[])(void *) = {add, append, note, hold, sum};
	return (uintptr_t)functions[which];
}
static uintptr_t *last_place(void) { return &last; }
static uintptr_t *times_place(void) { return &times; }
*/
import "C"

import (
	"sync/atomic"
	"unsafe"
)

func address(which int) uintptr { return uintptr(C.address_of(C.int(which))) }

func lastNoted() *atomic.Uintptr  { return (*atomic.Uintptr)(unsafe.Pointer(C.last_place())) }
func timesNoted() *atomic.Uintptr { return (*atomic.Uintptr)(unsafe.Pointer(C.times_place())) }
