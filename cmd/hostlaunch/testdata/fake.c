// libcuda's fake driver, which answers from the start as the macros say: VERSIONRESULT_IS and INIT_IS are what
// cuDriverGetVersion and cuInit answer, VERSION_IS is the CUDA version, LOST_IS what every call in a context answers. And here
// cuStreamSynchronize waits for the host functions, unless IDLE_IS.
#define cuGetProcAddress_v2 fake_proc_address
#include "../../../libcuda/testdata/fakecuda.c"
#undef cuGetProcAddress_v2
#include <sched.h>

__attribute__((constructor)) static void choose(void) {
	fake_set(VERSION, VERSION_IS);
	fake_set(VERSIONRESULT, VERSIONRESULT_IS);
	fake_set(INIT, INIT_IS);
	fake_set(LOST, LOST_IS);
	fake_set(HOLD, IDLE_IS);
}

static void mark(void *done) { __atomic_store_n((int *)done, 1, __ATOMIC_SEQ_CST); }

// Host functions run in the order in which they were queued, so when the last has run all have.
static int synchronize(void *s) {
	int done = 0, r = cuStreamSynchronize(s);
	if (r || get(HOLD)) return r;
	add(mark, 0, &done);
	while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) sched_yield();
	return 0;
}

int cuGetProcAddress_v2(const char *name, void **fn, int version, u64 flags, int *status) {
	int r = fake_proc_address(name, fn, version, flags, status);
	if (!strcmp(name, "cuStreamSynchronize")) *fn = (void *)synchronize;
	return r;
}
