// The C side of the package's tests: functions to call, a fake notion of a
// current context, and callers of the entries on threads of all kinds.

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef void host_function(void *);
typedef void status_function(void *, int, void *);

// Calls

// seen is what the last take function was given.
static u64 seen[12];

int seen_at(int i, u64 *out) {
	*out = seen[i];
	return 0;
}

// aligned is 1 if the caller called with the stack pointer that the ABI asks for.
static inline __attribute__((always_inline)) int aligned(void) {
	return ((uintptr_t)__builtin_frame_address(0) & 15) == 0;
}

#define TAKE(n, params, ...)                                      \
	__attribute__((noinline)) int take##n params {            \
		u64 got[] = {__VA_ARGS__};                        \
		memset(seen, 0, sizeof seen);                     \
		memcpy(seen, got, n * sizeof(u64));               \
		return aligned() ? n : -1;                        \
	}

TAKE(0, (void), 0)
TAKE(1, (u64 a), a)
TAKE(2, (u64 a, u64 b), a, b)
TAKE(3, (u64 a, u64 b, u64 c), a, b, c)
TAKE(4, (u64 a, u64 b, u64 c, u64 d), a, b, c, d)
TAKE(5, (u64 a, u64 b, u64 c, u64 d, u64 e), a, b, c, d, e)
TAKE(6, (u64 a, u64 b, u64 c, u64 d, u64 e, u64 f), a, b, c, d, e, f)
TAKE(7, (u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g), a, b, c, d, e, f, g)
TAKE(8, (u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h), a, b, c, d, e, f, g, h)
TAKE(9, (u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i), a, b, c, d, e, f, g, h, i)
TAKE(10, (u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j), a, b, c, d, e, f, g, h, i, j)
TAKE(11, (u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j, u64 k), a, b, c, d, e, f, g, h, i, j, k)
TAKE(12, (u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j, u64 k, u64 l), a, b, c, d, e, f, g, h, i, j, k, l)

int give(int result) { return result; }

int put(u64 *wide, uint32_t *narrow) {
	*wide = 0x1122334455667788;
	*narrow = 0x99aabbcc;
	return 0;
}

int sum(const unsigned char *bytes, int n) {
	int total = 0;
	for (int i = 0; i < n; i++) total += bytes[i];
	return total;
}

int environment(const char *name, char *out, size_t size) {
	const char *value = getenv(name);
	if (!value) return -1;
	strncpy(out, value, size);
	return strlen(value);
}

// Contexts

static __thread void *current;
static __thread int gets, sets, get_result, set_result;

int context_get(void **out) {
	gets++;
	if (!aligned()) return -2;
	*out = current;
	return get_result;
}

int context_set(void *context) {
	sets++;
	if (!aligned()) return -2;
	if (!set_result) current = context;
	return set_result;
}

// context_reset makes context current and has get and set return these results.
int context_reset(void *context, int get, int set) {
	current = context;
	gets = sets = 0;
	get_result = get;
	set_result = set;
	return 0;
}

int context_state(u64 *now, u64 *get_calls, u64 *set_calls) {
	*now = (u64)current;
	*get_calls = gets;
	*set_calls = sets;
	return aligned() ? 42 : -1;
}

int context_state7(u64 *now, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
	*now = (u64)current;
	return aligned() && f == 7 ? 43 : -1;
}

// Entries

int call_here(host_function *f, void *data, int n) {
	for (int i = 0; i < n; i++) f(data);
	return n;
}

// call_without_frames is call_here with data in the frame pointer register, as code may have that is compiled without frame
// pointers. (Elsewhere than on x86-64 it is call_here.)
int call_without_frames(host_function *f, void *data, int n) {
#ifdef __x86_64__
	for (int i = 0; i < n; i++) {
		host_function *fn = f;
		void *arg = data;
		__asm__ volatile(
			"mov %%rsp, %%rbx\n\t"
			"mov %%rbp, %%r12\n\t"
			"sub $128, %%rsp\n\t"
			"and $-16, %%rsp\n\t"
			"mov $0xdead, %%ebp\n\t"
			"call *%%rax\n\t"
			"mov %%r12, %%rbp\n\t"
			"mov %%rbx, %%rsp"
			: "+a"(fn), "+D"(arg)
			:
			: "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
	}
	return n;
#else
	return call_here(f, data, n);
#endif
}

struct job {
	host_function *f;
	void *data;
	int n;
};

static void *run_job(void *arg) {
	struct job *job = arg;
	call_here(job->f, job->data, job->n);
	return 0;
}

static void *run_without_frames(void *arg) {
	struct job *job = arg;
	call_without_frames(job->f, job->data, job->n);
	return 0;
}

// call_thread_without_frames is call_without_frames on a thread of its own.
int call_thread_without_frames(host_function *f, void *data, int n) {
	struct job job = {f, data, n};
	pthread_t id;
	if (pthread_create(&id, 0, run_without_frames, &job)) return -1;
	return pthread_join(id, 0);
}

// call_threads has each of a number of threads, all at once, call f n times.
int call_threads(host_function *f, void *data, int n, int threads) {
	struct job job = {f, data, n};
	pthread_t *ids = calloc(threads, sizeof *ids);
	int started = 0;
	while (started < threads && pthread_create(&ids[started], 0, run_job, &job) == 0) started++;
	for (int i = 0; i < started; i++) pthread_join(ids[i], 0);
	free(ids);
	return started;
}

// call_short has each of a number of threads, one after the other, call f once.
int call_short(host_function *f, void *data, int threads) {
	for (int i = 0; i < threads; i++)
		if (call_threads(f, data, 1, 1) != 1) return i;
	return threads;
}

// preserves calls f with values in all callee-saved registers, and is 1 if they
// are still there afterwards.
int preserves(host_function *f, void *data) {
	static volatile u64 w[] = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
	static volatile double x[] = {.1, .2, .3, .4, .5, .6, .7, .8};
	u64 a = w[0], b = w[1], c = w[2], d = w[3], e = w[4], g = w[5], h = w[6], i = w[7], j = w[8], k = w[9];
	double l = x[0], m = x[1], n = x[2], o = x[3], p = x[4], q = x[5], r = x[6], s = x[7];
	f(data);
	return a == w[0] && b == w[1] && c == w[2] && d == w[3] && e == w[4] && g == w[5] && h == w[6] && i == w[7] &&
	       j == w[8] && k == w[9] && l == x[0] && m == x[1] && n == x[2] && o == x[3] && p == x[4] && q == x[5] &&
	       r == x[6] && s == x[7];
}

struct status_job {
	status_function *f;
	void *stream;
	int status;
	void *data;
};

static void *run_status(void *arg) {
	struct status_job *job = arg;
	job->f(job->stream, job->status, job->data);
	return 0;
}

int call_status(status_function *f, void *stream, int status, void *data) {
	struct status_job job = {f, stream, status, data};
	pthread_t id;
	if (pthread_create(&id, 0, run_status, &job)) return -1;
	return pthread_join(id, 0);
}

// Native host functions

// misaligned counts the calls of aligned_add with a stack that C does not expect, and is there for good.
static _Atomic int misaligned;

// aligned_add adds 1 to the counter, and uses vectors on its stack, as compilers do.
void aligned_add(void *data) {
	if (!aligned()) misaligned++;
	volatile double x[8] __attribute__((aligned(64))) = {1, 2, 3, 4};
	x[7] = x[0] + x[1];
	__atomic_fetch_add((u64 *)data, 1, __ATOMIC_SEQ_CST);
}

int misaligned_calls(void) { return misaligned; }

// Benchmarks

__attribute__((noinline)) int nop(u64 a, u64 b, u64 c) {
	__asm__ volatile("");
	return 0;
}

void host_nop(void *data) { __asm__ volatile(""); }

// bound_loop does n times in C what a Call does with a context to be bound.
int bound_loop(int (*volatile f)(u64, u64, u64), void *context, int n) {
	for (int i = 0; i < n; i++) {
		void *former;
		context_get(&former);
		if (former != context) context_set(context);
		f(1, 2, 3);
		if (former != context) context_set(former);
	}
	return 0;
}

int loop(int (*volatile f)(u64, u64, u64), int n) {
	for (int i = 0; i < n; i++) f(1, 2, 3);
	return 0;
}
