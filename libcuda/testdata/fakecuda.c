// A libcuda that has no GPU behind it: it writes down what it is called with, and answers what the test has told it to.
// The signatures and version numbers are those of cuda.h and cudaTypedefs.h (CUDA 13.0), written down here independently of
// the table that libcuda is generated from.
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned int u32;
typedef unsigned long long u64;

// What the test sets and reads; the order is that of fake_test.go.
enum {
	VERSION,      // of the driver
	INIT,         // cuInit's answer
	VERSIONRESULT,// cuDriverGetVersion's answer
	LOST,         // every call in a context answers this
	EVENT,        // cuEventQuery's answer
	HOLD,         // host functions wait
	CONNECTIONS,  // CUDA_DEVICE_MAX_CONNECTIONS at cuInit
	INITS,        // calls of cuInit
	POLLS,        // stream and event queries
	UNRELAXED,    // of those, by a thread that is not in Relaxed capture mode
	STREAMS,      // made and not destroyed
	CAPTURING,    // cuStreamIsCapturing's status
	STRICT,       // functions that need no current context want one all the same
	KNOBS
};
static int64_t knobs[KNOBS] = {[VERSION] = 13000, [CAPTURING] = 2};
void fake_set(int knob, int64_t value) { __atomic_store_n(&knobs[knob], value, __ATOMIC_SEQ_CST); }
void fake_get(int knob, int64_t *value) { *value = __atomic_load_n(&knobs[knob], __ATOMIC_SEQ_CST); }
static int64_t get(int knob) { int64_t v; fake_get(knob, &v); return v; }
static void count(int knob, int by) { __atomic_add_fetch(&knobs[knob], by, __ATOMIC_SEQ_CST); }

int fake_nothing(void) { return 0; }

static char missing[64];
void fake_missing(const char *name) { snprintf(missing, sizeof missing, "%s", name); }

// The thread's state.
static __thread void *current;
static __thread int mode;

// What has been called, a line each.
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static char text[1 << 17];
static size_t length;
static void put(const char *format, ...) {
	va_list args;
	va_start(args, format);
	pthread_mutex_lock(&mu);
	if (length < sizeof text - 512) length += vsnprintf(text + length, 512, format, args);
	pthread_mutex_unlock(&mu);
	va_end(args);
}
void fake_log(char *to, size_t size) {
	pthread_mutex_lock(&mu);
	snprintf(to, size, "%.*s", (int)length, text);
	length = 0;
	pthread_mutex_unlock(&mu);
}
#define LOG(...) (put(__VA_ARGS__), put(" in %p\n", current))
static int in_context(void) { return current ? get(LOST) : 201; }
#define CTX(...) LOG(__VA_ARGS__); int r = in_context(); if (r) return r
#define NOCTX(...) LOG(__VA_ARGS__); if (!current && get(STRICT)) return 201

static void poll(void) { count(POLLS, 1); if (mode != 2) count(UNRELAXED, 1); }

int cuInit(u32 flags) {
	const char *s = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	fake_set(CONNECTIONS, s ? atoi(s) : -1);
	count(INITS, 1);
	return flags ? 1 : get(INIT);
}
int cuDriverGetVersion(int *version) {
	int r = get(VERSIONRESULT);
	if (!r) *version = get(VERSION);
	return r;
}

int cuDeviceGetCount(int *count) { LOG("cuDeviceGetCount()"); *count = 2; return 0; }
int cuDeviceGetName(char *name, int len, int dev) { LOG("cuDeviceGetName(len=%d, dev=%d)", len, dev); snprintf(name, len, "Fake %d", dev); return 0; }
int cuDeviceGetAttribute(int *pi, int attrib, int dev) { LOG("cuDeviceGetAttribute(attrib=%d, dev=%d)", attrib, dev); *pi = attrib < 9 ? 1024 : -attrib; return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int dev) { LOG("cuDeviceTotalMem(dev=%d)", dev); *bytes = 0x2345678901; return 0; }
int cuDevicePrimaryCtxRetain(void **ctx, int dev) { LOG("cuDevicePrimaryCtxRetain(dev=%d)", dev); *ctx = (void *)(uintptr_t)(0xc0 + dev); return get(LOST); }
int cuDevicePrimaryCtxRelease_v2(int dev) { LOG("cuDevicePrimaryCtxRelease(dev=%d)", dev); return 0; }
int cuCtxGetCurrent(void **ctx) { *ctx = current; return 0; }
int cuCtxSetCurrent(void *ctx) { current = ctx; return 0; }
int cuCtxGetDevice(int *dev) { CTX("cuCtxGetDevice()"); *dev = (int)(uintptr_t)current - 0xc0; return 0; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { CTX("cuCtxGetStreamPriorityRange()"); *least = 0; *greatest = -5; return 0; }
int cuCtxSynchronize(void) { CTX("cuCtxSynchronize()"); return 0; }
int cuThreadExchangeStreamCaptureMode(int *m) { int was = mode; mode = *m; *m = was; return 0; }

int cuStreamCreateWithPriority(void **s, u32 flags, int priority) {
	CTX("cuStreamCreateWithPriority(flags=%u, priority=%d)", flags, priority);
	count(STREAMS, 1);
	*s = (void *)0x51;
	return 0;
}
int cuStreamDestroy_v2(void *s) { count(STREAMS, -1); CTX("cuStreamDestroy(stream=%p)", s); return 0; }
int cuStreamQuery(void *s) { poll(); CTX("cuStreamQuery(stream=%p)", s); return 0; }
int cuStreamSynchronize(void *s) { CTX("cuStreamSynchronize(stream=%p)", s); return 0; }
int cuStreamWaitEvent(void *s, void *e, u32 flags) { CTX("cuStreamWaitEvent(stream=%p, event=%p, flags=%u)", s, e, flags); return 0; }
int cuStreamGetFlags(void *s, u32 *flags) { CTX("cuStreamGetFlags(stream=%p)", s); *flags = 0x80000001; return 0; }
int cuStreamGetPriority(void *s, int *priority) { CTX("cuStreamGetPriority(stream=%p)", s); *priority = -3; return 0; }
int cuStreamGetId(void *s, u64 *id) { CTX("cuStreamGetId(stream=%p)", s); *id = 0xfedcba9876543210; return 0; }
int cuStreamGetCtx(void *s, void **ctx) { CTX("cuStreamGetCtx(stream=%p)", s); *ctx = (void *)0xc1; return 0; }
int cuStreamGetDevice(void *s, int *dev) { CTX("cuStreamGetDevice(stream=%p)", s); *dev = 1; return 0; }

int cuEventCreate(void **e, u32 flags) { CTX("cuEventCreate(flags=%u)", flags); *e = (void *)0xe1; return 0; }
int cuEventDestroy_v2(void *e) { CTX("cuEventDestroy(event=%p)", e); return 0; }
int cuEventRecord(void *e, void *s) { CTX("cuEventRecord(event=%p, stream=%p)", e, s); return 0; }
int cuEventQuery(void *e) { poll(); CTX("cuEventQuery(event=%p)", e); return get(EVENT); }
int cuEventSynchronize(void *e) { CTX("cuEventSynchronize(event=%p)", e); return 0; }
int cuEventElapsedTime(float *ms, void *start, void *end) { CTX("cuEventElapsedTime(start=%p, end=%p)", start, end); *ms = 1.5f; return 0; }

int cuMemAlloc_v2(u64 *p, size_t n) { CTX("cuMemAlloc(bytes=%zu)", n); *p = 0xd00000001000; return 0; }
int cuMemFree_v2(u64 p) { CTX("cuMemFree(dptr=%#llx)", p); return 0; }
int cuMemHostAlloc(void **p, size_t n, u32 flags) { CTX("cuMemHostAlloc(bytes=%zu, flags=%u)", n, flags); *p = strcpy(aligned_alloc(64, n / 64 * 64 + 64), "pinned"); return 0; }
int cuMemFreeHost(void *p) { CTX("cuMemFreeHost(\"%s\")", (char *)p); free(p); return 0; }
int cuMemcpyHtoD_v2(u64 d, const void *h, size_t n) { CTX("cuMemcpyHtoD(dst=%#llx, src=\"%.*s\", n=%zu)", d, (int)n, (const char *)h, n); return 0; }
int cuMemcpyDtoH_v2(void *h, u64 d, size_t n) { CTX("cuMemcpyDtoH(src=%#llx, n=%zu)", d, n); memset(h, 'x', n); return 0; }
int cuMemcpyHtoDAsync_v2(u64 d, const void *h, size_t n, void *s) { CTX("cuMemcpyHtoDAsync(dst=%#llx, src=\"%.*s\", n=%zu, stream=%p)", d, (int)n, (const char *)h, n, s); return 0; }
int cuMemcpyDtoHAsync_v2(void *h, u64 d, size_t n, void *s) { CTX("cuMemcpyDtoHAsync(src=%#llx, n=%zu, stream=%p)", d, n, s); memset(h, 'y', n); return 0; }
int cuMemcpyDtoDAsync_v2(u64 d, u64 f, size_t n, void *s) { CTX("cuMemcpyDtoDAsync(dst=%#llx, src=%#llx, n=%zu, stream=%p)", d, f, n, s); return 0; }
int cuMemHostRegister_v2(void *p, size_t n, u32 flags) { CTX("cuMemHostRegister(\"%.*s\", flags=%u)", (int)n, (char *)p, flags); return 0; }
int cuMemHostUnregister(void *p) { CTX("cuMemHostUnregister(%d)", p != 0); return 0; }
int cuMemcpyPeerAsync(u64 d, void *dc, u64 f, void *fc, size_t n, void *s) { CTX("cuMemcpyPeerAsync(dst=%#llx of %p, src=%#llx of %p, n=%zu, stream=%p)", d, dc, f, fc, n, s); return 0; }
typedef struct { size_t x, y; u32 type; void *host; u64 device; void *array; size_t pitch; } end2d;
typedef struct { end2d src, dst; size_t width, height; } copy2d;
_Static_assert(sizeof(copy2d) == 128 && offsetof(copy2d, dst) == 56 && offsetof(copy2d, src.pitch) == 48 && offsetof(copy2d, width) == 112, "as in cuda.h");
int cuMemcpy2DAsync_v2(const copy2d *c, void *s) {
	CTX("cuMemcpy2DAsync(src=%u %zu %zu %d %#llx pitch %zu, dst=%u %zu %zu %d %#llx pitch %zu, %zu x %zu, stream=%p)",
		c->src.type, c->src.x, c->src.y, c->src.host != 0, c->src.device, c->src.pitch,
		c->dst.type, c->dst.x, c->dst.y, c->dst.host != 0, c->dst.device, c->dst.pitch, c->width, c->height, s);
	return 0;
}
int cuMemsetD8Async(u64 d, unsigned char v, size_t n, void *s) { CTX("cuMemsetD8Async(dst=%#llx, value=%u, n=%zu, stream=%p)", d, v, n, s); return 0; }
int cuMemsetD16Async(u64 d, unsigned short v, size_t n, void *s) { CTX("cuMemsetD16Async(dst=%#llx, value=%u, n=%zu, stream=%p)", d, v, n, s); return 0; }
int cuMemsetD32Async(u64 d, u32 v, size_t n, void *s) { CTX("cuMemsetD32Async(dst=%#llx, value=%u, n=%zu, stream=%p)", d, v, n, s); return 0; }

int cuModuleLoadDataEx(void **m, const void *image, u32 n, int *options, void **values) {
	CTX("cuModuleLoadDataEx(image=\"%s\", options=%u)", (const char *)image, n);
	for (u32 i = 0; i < n; i++)
		if (options[i] == 5) { // CU_JIT_ERROR_LOG_BUFFER
			if (strcmp(image, "bad")) continue;
			snprintf(values[i], (size_t)values[1 - i], "ptxas: line 1: bad\n"); // its size, option 6, is the other one
			*(u32 *)&values[1 - i] = 19;
			return 218;
		}
	*m = (void *)0x31;
	return 0;
}
int cuModuleUnload(void *m) { CTX("cuModuleUnload(module=%p)", m); return 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) { CTX("cuModuleGetFunction(module=%p, name=\"%s\")", m, name ? name : "NULL"); *f = (void *)0xf1; return name ? 0 : 1; }
int cuFuncGetParamInfo(void *f, size_t index, size_t *offset, size_t *size) {
	CTX("cuFuncGetParamInfo(func=%p, index=%zu)", f, index);
	if (index > 1) return 1;
	*offset = 8 * index;
	*size = index ? 4 : 8;
	return 0;
}
int cuLaunchKernel(void *f, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, void *s, void **params, void **extra) {
	char values[64] = "none";
	if (params) snprintf(values, sizeof values, "%llu, %u", *(u64 *)params[0], *(u32 *)params[1]);
	CTX("cuLaunchKernel(f=%p, grid=%u %u %u, block=%u %u %u, shared=%u, stream=%p, params=%s, extra=%p)", f, gx, gy, gz, bx, by, bz, shared, s, values, (void *)extra);
	return gx && bx <= 1024 ? 0 : 1;
}

// Capture and graphs. A list that goes in is written down; one that comes out is of two, the second edge with data.
typedef struct { unsigned char from_port, to_port, type, reserved[5]; } edge;
static char *nodes_in(char *to, size_t size, void *const *nodes, const edge *edges, size_t n) {
	size_t at = snprintf(to, size, "%zu", n);
	for (size_t i = 0; nodes && i < n; i++) at += snprintf(to + at, size - at, " %p", nodes[i]);
	for (size_t i = 0; edges && i < n; i++) at += snprintf(to + at, size - at, " %u/%u/%u", edges[i].from_port, edges[i].to_port, edges[i].type);
	return to;
}
int cuStreamBeginCapture_v2(void *s, int mode) { CTX("cuStreamBeginCapture(stream=%p, mode=%d)", s, mode); return 0; }
int cuStreamBeginCaptureToGraph(void *s, void *g, void *const *deps, const edge *edges, size_t n, int mode) {
	char list[256];
	CTX("cuStreamBeginCaptureToGraph(stream=%p, graph=%p, deps=%s, mode=%d)", s, g, nodes_in(list, sizeof list, deps, edges, n), mode);
	return 0;
}
int cuStreamBeginRecaptureToGraph(void *s, int mode, void *g, int (*changed)(void *, void *, const void *, const void *, int), void *data) {
	CTX("cuStreamBeginRecaptureToGraph(stream=%p, mode=%d, graph=%p, changed: %d, data=%p)", s, mode, g, changed(data, (void *)0x71, &mode, &mode, 1), data);
	return 0;
}
int cuStreamEndCapture(void *s, void **g) { CTX("cuStreamEndCapture(stream=%p)", s); *g = (void *)0x61; return 0; }
int cuStreamIsCapturing(void *s, int *status) { CTX("cuStreamIsCapturing(stream=%p)", s); *status = get(CAPTURING); return 0; }
int cuStreamGetCaptureInfo_v3(void *s, int *status, u64 *id, void **g, void *const **deps, const edge **edges, size_t *n) {
	static void *const nodes[] = {(void *)0x71, (void *)0x72};
	static const edge data[] = {{0, 0, 0}, {1, 2, 3}};
	CTX("cuStreamGetCaptureInfo(stream=%p)", s);
	if (s == (void *)0x5b) return *status = 0; // not capturing: nothing else is written
	*status = 1, *id = 0x123456789a, *g = (void *)0x61, *deps = nodes, *edges = data, *n = 2;
	return 0;
}
int cuStreamUpdateCaptureDependencies_v2(void *s, void **deps, const edge *edges, size_t n, u32 flags) {
	char list[256];
	CTX("cuStreamUpdateCaptureDependencies(stream=%p, deps=%s, flags=%u)", s, nodes_in(list, sizeof list, deps, edges, n), flags);
	return 0;
}
int cuEventRecordWithFlags(void *e, void *s, u32 flags) { CTX("cuEventRecordWithFlags(event=%p, stream=%p, flags=%u)", e, s, flags); return 0; }
int cuGraphCreate(void **g, u32 flags) { CTX("cuGraphCreate(flags=%u)", flags); *g = (void *)0x62; return 0; }
int cuGraphDestroy(void *g) { CTX("cuGraphDestroy(graph=%p)", g); return 0; }
int cuGraphGetNodes(void *g, void **nodes, size_t *n) {
	CTX("cuGraphGetNodes(graph=%p, room=%zu)", g, nodes ? *n : 0);
	if (nodes && *n >= 2) nodes[0] = (void *)0x71, nodes[1] = (void *)0x72;
	*n = g == (void *)0x60 ? 0 : 2;
	return 0;
}
int cuGraphGetEdges_v2(void *g, void **from, void **to, edge *data, size_t *n) {
	CTX("cuGraphGetEdges(graph=%p, room=%zu)", g, from && to && data ? *n : 0);
	if (from && *n >= 2) {
		from[0] = (void *)0x71, to[0] = (void *)0x72, data[0] = (edge){0};
		from[1] = (void *)0x73, to[1] = (void *)0x74, data[1] = (edge){1, 2, 3};
	}
	*n = 2;
	return 0;
}
int cuGraphNodeGetType(void *node, int *type) { CTX("cuGraphNodeGetType(node=%p)", node); *type = 3; return 0; }
int cuGraphExecDestroy(void *x) { CTX("cuGraphExecDestroy(exec=%p)", x); return 0; }

// Host functions run one by one, on a thread of ours. A lost context drops them.
struct task { void (*fn)(void *); void (*callback)(void *, int, void *); void *data; struct task *next; };
static struct task *first, **last = &first;
static pthread_mutex_t queue_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *work(void *unused) {
	for (;;) {
		pthread_mutex_lock(&queue_mu);
		while (!first || get(HOLD)) {
			struct timespec t;
			clock_gettime(CLOCK_REALTIME, &t);
			if ((t.tv_nsec += 1000000) >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
			pthread_cond_timedwait(&queued, &queue_mu, &t);
		}
		struct task *task = first;
		if (!(first = task->next)) last = &first;
		pthread_mutex_unlock(&queue_mu);
		if (task->callback) task->callback((void *)0x5a, get(LOST), task->data);
		else if (!get(LOST)) task->fn(task->data);
		free(task);
	}
	return unused;
}
static void start(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_detach(t); }
static int add(void (*fn)(void *), void (*callback)(void *, int, void *), void *data) {
	pthread_once(&once, start);
	struct task *task = malloc(sizeof *task);
	*task = (struct task){fn, callback, data, 0};
	pthread_mutex_lock(&queue_mu);
	*last = task;
	last = &task->next;
	pthread_cond_signal(&queued);
	pthread_mutex_unlock(&queue_mu);
	return 0;
}
#define DATA(data) ((u64)data & 0xffffffffffffff)

// CUstreamBatchMemOpParams of cuda.h; only the members that are used.
typedef union {
	u32 operation;
	struct { u32 operation; u64 address; union { u32 value; u64 value64; }; u32 flags; u64 alias; } value;
	struct { u32 operation; u32 flags; } plain;
	u64 pad[6];
} memop;
static char *ops_in(char *to, size_t size, const memop *ops, u32 n) {
	*to = 0;
	for (u32 i = 0; i < n; i++) {
		char *end = to + strlen(to);
		size_t room = size - (end - to);
		if (ops[i].operation == 3 || ops[i].operation == 6) snprintf(end, room, " op=%u flags=%u", ops[i].operation, ops[i].plain.flags);
		else snprintf(end, room, " op=%u %#llx value=%llu flags=%u", ops[i].operation, ops[i].value.address, ops[i].value.value64, ops[i].value.flags);
	}
	return to;
}

// A CUgraphNodeParams; only the members that are used, and those of cuda.h up to CUDA 13.2.
typedef struct { u64 sx, sy, sz, slod; u32 stype; const void *shost; u64 sdevice; void *sarray, *r0; u64 spitch, sheight,
	dx, dy, dz, dlod; u32 dtype; void *dhost; u64 ddevice; void *darray, *r1; u64 dpitch, dheight, width, height, depth; } memcpy3d;
typedef struct { void *func; u32 gx, gy, gz, bx, by, bz, shared; void **params, **extra; void *kern, *ctx; } kernel_node;
typedef struct { void (*fn)(void *); void *data; } host_node;
typedef struct {
	u32 type, reserved0[3];
	union {
		u64 reserved1[29];
		kernel_node kernel;
		struct { int flags, reserved; void *ctx; memcpy3d copy; } memcpy;
		struct { u64 dst, pitch; u32 value, element; u64 width, height; void *ctx; } memset;
		struct { host_node host; u32 mode; } host;
		struct { void *graph; u32 ownership; } child;
		struct { void *event; } event;
		struct {
			struct { u32 type, handles; struct { u32 type; int id; } location; void *security; u64 max; unsigned short usage; char reserved[54]; } pool;
			void *access;
			u64 accesses, size, dptr;
		} alloc;
		struct { u64 dptr; } free;
		struct { void *ctx; u32 n; const memop *ops; u32 flags; } batch;
		struct { u64 handle; u32 type, size; void **bodies, *ctx; } cond;
	};
	u64 reserved2;
} node_params;
_Static_assert(sizeof(node_params) == 256 && offsetof(node_params, reserved2) == 248 && sizeof(memcpy3d) == 200, "as in cuda.h");
_Static_assert(sizeof(kernel_node) == 72 && sizeof(((node_params *)0)->alloc) == 120 && sizeof(((node_params *)0)->memset) == 48, "as in cuda.h");

static host_node added; // the last host node

// node_in writes down p, and whether everything is zero that its type does not use.
static char *node_in(char *to, size_t size, const node_params *p) {
	size_t used = 0;
	char values[64] = "none", list[200];
	switch (p->type) {
	case 0:
		if (p->kernel.params) snprintf(values, sizeof values, "%llu, %u", *(u64 *)p->kernel.params[0], *(u32 *)p->kernel.params[1]);
		snprintf(to, size, "kernel f=%p grid=%u %u %u block=%u %u %u shared=%u params=%s extra=%p", p->kernel.func, p->kernel.gx, p->kernel.gy, p->kernel.gz,
			p->kernel.bx, p->kernel.by, p->kernel.bz, p->kernel.shared, values, (void *)p->kernel.extra);
		used = offsetof(kernel_node, kern);
		break;
	case 1: {
		const memcpy3d *c = &p->memcpy.copy;
		snprintf(to, size, "memcpy ctx=%p src=%llu %llu %llu %llu type=%u host=\"%s\" device=%#llx pitch=%llu height=%llu dst=%llu %llu %llu %llu type=%u host=%p device=%#llx pitch=%llu height=%llu size=%llu %llu %llu",
			p->memcpy.ctx, c->sx, c->sy, c->sz, c->slod, c->stype, (const char *)c->shost, c->sdevice, c->spitch, c->sheight,
			c->dx, c->dy, c->dz, c->dlod, c->dtype, c->dhost, c->ddevice, c->dpitch, c->dheight, c->width, c->height, c->depth);
		used = p->memcpy.flags || p->memcpy.reserved || c->sarray || c->r0 || c->darray || c->r1 ? 0 : sizeof p->memcpy;
		break;
	}
	case 2:
		snprintf(to, size, "memset ctx=%p dst=%#llx pitch=%llu value=%u element=%u size=%llu %llu", p->memset.ctx, p->memset.dst, p->memset.pitch,
			p->memset.value, p->memset.element, p->memset.width, p->memset.height);
		used = sizeof p->memset;
		break;
	case 3:
		snprintf(to, size, "host data=%#llx mode=%u", DATA(p->host.host.data), p->host.mode);
		used = get(VERSION) < 13020 ? 16 : 20;
		added = p->host.host;
		break;
	case 4: snprintf(to, size, "child graph=%p", p->child.graph), used = sizeof p->child.graph; break; // ownership 0: a clone
	case 5: snprintf(to, size, "empty"); break;
	case 6: snprintf(to, size, "wait event=%p", p->event.event), used = sizeof p->event; break;
	case 7: snprintf(to, size, "record event=%p", p->event.event), used = sizeof p->event; break;
	case 10:
		snprintf(to, size, "alloc type=%u location=%u %d size=%llu", p->alloc.pool.type, p->alloc.pool.location.type, p->alloc.pool.location.id, p->alloc.size);
		used = p->alloc.pool.handles || p->alloc.access || p->alloc.accesses ? 0 : offsetof(node_params, alloc.dptr) - 16;
		for (const char *c = (char *)&p->alloc.pool.security; c < (char *)&p->alloc.access; c++) if (*c) used = 0;
		break;
	case 11: snprintf(to, size, "free dptr=%#llx", p->free.dptr), used = sizeof p->free; break;
	case 12: snprintf(to, size, "batch ctx=%p n=%u%s", p->batch.ctx, p->batch.n, ops_in(list, sizeof list, p->batch.ops, p->batch.n)), used = 24; break;
	case 13: snprintf(to, size, "conditional handle=%#llx type=%u size=%u ctx=%p", p->cond.handle, p->cond.type, p->cond.size, p->cond.ctx), used = sizeof p->cond; break;
	}
	int clean = !p->reserved0[0] && !p->reserved0[1] && !p->reserved0[2];
	for (const char *c = (char *)p->reserved1 + used; c < (char *)(p + 1); c++) if (*c) clean = 0;
	if (!clean) strcat(to, " UNCLEAN");
	return to;
}
static int placeless(u32 type) { return type >= 3 && type <= 7; }
int cuGraphAddNode_v2(void **n, void *g, void *const *deps, const edge *edges, size_t count, node_params *p) {
	char node[500], list[200];
	put("cuGraphAddNode(graph=%p, deps=%s, ", g, nodes_in(list, sizeof list, deps, edges, count));
	LOG("%s)", node_in(node, sizeof node, p));
	int r = !placeless(p->type) ? in_context() : !current && get(STRICT) ? 201 : 0;
	if (r) return r;
	static void *bodies[] = {(void *)0x63, (void *)0x64, (void *)0x65};
	if (p->type == 10) p->alloc.dptr = 0x302000000;
	if (p->type == 13) p->cond.bodies = bodies;
	*n = (void *)0x75;
	return g == (void *)0x60;
}
int cuGraphNodeSetParams(void *n, node_params *p) { char node[500]; CTX("cuGraphNodeSetParams(node=%p, %s)", n, node_in(node, sizeof node, p)); return 0; }
int cuGraphExecNodeSetParams(void *x, void *n, node_params *p) { char node[500]; CTX("cuGraphExecNodeSetParams(exec=%p, node=%p, %s)", x, n, node_in(node, sizeof node, p)); return 0; }
int cuGraphDestroyNode(void *n) { CTX("cuGraphDestroyNode(node=%p)", n); return 0; }
int cuGraphClone(void **clone, void *g) { CTX("cuGraphClone(graph=%p)", g); *clone = (void *)0x66; return 0; }
int cuGraphNodeFindInClone(void **found, void *n, void *clone) { NOCTX("cuGraphNodeFindInClone(node=%p, clone=%p)", n, clone); *found = (void *)0x76; return 0; }
static char *edges_in(char *to, size_t size, void *const *from, void *const *end, const edge *edges, size_t n) {
	char list[100];
	snprintf(to, size, "from=%s", nodes_in(list, sizeof list, from, 0, n));
	size_t at = strlen(to);
	snprintf(to + at, size - at, ", to=%s", nodes_in(list, sizeof list, end, edges, n));
	return to;
}
int cuGraphAddDependencies_v2(void *g, void *const *from, void *const *to, const edge *edges, size_t n) { char list[256]; NOCTX("cuGraphAddDependencies(graph=%p, %s)", g, edges_in(list, sizeof list, from, to, edges, n)); return 0; }
int cuGraphRemoveDependencies_v2(void *g, void *const *from, void *const *to, const edge *edges, size_t n) { char list[256]; NOCTX("cuGraphRemoveDependencies(graph=%p, %s)", g, edges_in(list, sizeof list, from, to, edges, n)); return 0; }
int cuGraphChildGraphNodeGetGraph(void *n, void **g) { CTX("cuGraphChildGraphNodeGetGraph(node=%p)", n); *g = (void *)0x67; return 0; }
// Node 0x75 is the last one added; 0x76 has a function of somebody else's, 0x77 the data of another driver of this library's.
int cuGraphHostNodeGetParams(void *n, host_node *p) {
	CTX("cuGraphHostNodeGetParams(node=%p)", n);
	*p = added;
	if (n == (void *)0x76) p->fn = free;
	if (n == (void *)0x77) p->data = (void *)((u64)p->data + (1ull << 56));
	return n == (void *)0x78;
}
int cuGraphKernelNodeGetParams_v2(void *n, kernel_node *p) {
	CTX("cuGraphKernelNodeGetParams(node=%p)", n);
	*p = (kernel_node){(void *)0xf1, 1, 2, 3, 4, 5, 6, 7, (void **)8, (void **)9, (void *)10, (void *)11};
	return 0;
}
int cuFuncGetName(const char **name, void *f) { CTX("cuFuncGetName(func=%p)", f); *name = f ? "axpy" : 0; return !f; }
int cuGraphConditionalHandleCreate(u64 *h, void *g, void *ctx, u32 value, u32 flags) {
	CTX("cuGraphConditionalHandleCreate(graph=%p, ctx=%p, value=%u, flags=%u)", g, ctx, value, flags);
	*h = 0xfedcba9876543210;
	return 0;
}
int cuGraphDebugDotPrint(void *g, const char *path, u32 flags) { CTX("cuGraphDebugDotPrint(graph=%p, path=\"%s\", flags=%u)", g, path ? path : "NULL", flags); return 0; }

typedef struct { u64 flags; void *stream, *node; int result; } instantiation;
_Static_assert(sizeof(instantiation) == 32, "as in cuda.h");
int cuGraphInstantiateWithParams(void **x, void *g, instantiation *p) {
	CTX("cuGraphInstantiateWithParams(graph=%p, flags=%llu, stream=%p)", g, p->flags, p->stream);
	if (g == (void *)0x62) return p->node = (void *)0x71, p->result = 3, 1;
	*x = (void *)0x81, p->node = 0, p->result = 0;
	return 0;
}
int cuGraphUpload(void *x, void *s) { CTX("cuGraphUpload(exec=%p, stream=%p)", x, s); return 0; }
int cuGraphLaunch(void *x, void *s) { CTX("cuGraphLaunch(exec=%p, stream=%p)", x, s); return x == (void *)0x82 ? add(added.fn, 0, added.data) : 0; }
typedef struct { int result; void *node, *from; } update;
_Static_assert(sizeof(update) == 24, "as in cuda.h");
int cuGraphExecUpdate_v2(void *x, void *g, update *u) { CTX("cuGraphExecUpdate(exec=%p, graph=%p)", x, g); *u = (update){2, (void *)0x71, (void *)0x72}; return 910; }
int cuGraphNodeSetEnabled(void *x, void *n, u32 enabled) { CTX("cuGraphNodeSetEnabled(exec=%p, node=%p, enabled=%u)", x, n, enabled); return 0; }
int cuGraphNodeGetEnabled(void *x, void *n, u32 *enabled) { CTX("cuGraphNodeGetEnabled(exec=%p, node=%p)", x, n); *enabled = n == (void *)0x71; return 0; }

// There is one user object at a time. Its destructor runs in the call that drops the last reference.
static struct { void (*destroy)(void *); void *data; u32 count; } object;
int cuUserObjectCreate(void **o, void *data, void (*destroy)(void *), u32 count, u32 flags) {
	LOG("cuUserObjectCreate(data=%#llx, count=%u, flags=%u)", DATA(data), count, flags);
	object.destroy = destroy, object.data = data, object.count = count, *o = (void *)0xb0;
	return 0;
}
static int drop(u32 count) { if (!(object.count -= count)) object.destroy(object.data); return 0; }
int cuUserObjectRelease(void *o, u32 count) { LOG("cuUserObjectRelease(object=%p, count=%u)", o, count); return drop(count); }
int cuGraphRetainUserObject(void *g, void *o, u32 count, u32 flags) {
	NOCTX("cuGraphRetainUserObject(graph=%p, object=%p, count=%u, flags=%u)", g, o, count, flags);
	if (!flags) object.count += count;
	return 0;
}
int cuGraphReleaseUserObject(void *g, void *o, u32 count) { NOCTX("cuGraphReleaseUserObject(graph=%p, object=%p, count=%u)", g, o, count); return drop(count); }

int cuLaunchHostFunc(void *s, void (*fn)(void *), void *data) {
	CTX("cuLaunchHostFunc(stream=%p, data=%#llx)", s, DATA(data));
	return add(fn, 0, data);
}
int cuLaunchHostFunc_v2(void *s, void (*fn)(void *), void *data, u32 mode) {
	CTX("cuLaunchHostFunc(stream=%p, data=%#llx, mode=%u)", s, DATA(data), mode);
	return add(fn, 0, data);
}
int cuStreamAddCallback(void *s, void (*callback)(void *, int, void *), void *data, u32 flags) {
	CTX("cuStreamAddCallback(stream=%p, data=%#llx, flags=%u)", s, DATA(data), flags);
	return flags ? 1 : add(0, callback, data);
}

int cuStreamGetAttribute(void *s, int attr, char *value) { CTX("cuStreamGetAttribute(stream=%p, attr=%d)", s, attr); for (int i = 0; i < 64; i++) value[i] = 1 + i; return attr == 99; }
int cuStreamSetAttribute(void *s, int attr, const char *value) { CTX("cuStreamSetAttribute(stream=%p, attr=%d, first=%d, last=%d)", s, attr, value[0], value[63]); return 0; }
int cuStreamCopyAttributes(void *dst, void *src) { CTX("cuStreamCopyAttributes(dst=%p, src=%p)", dst, src); return 0; }

// A new context lies on the thread's stack until it is taken off.
static __thread void *below;
int cuCtxCreate_v2(void **ctx, u32 flags, int dev) { LOG("cuCtxCreate(flags=%u, dev=%d)", flags, dev); below = current; *ctx = current = (void *)(uintptr_t)(0xca + dev); return 0; }
int cuCtxPopCurrent_v2(void **ctx) { LOG("cuCtxPopCurrent()"); *ctx = current; current = below; return 0; }
int cuCtxDestroy_v2(void *ctx) { LOG("cuCtxDestroy(ctx=%p)", ctx); return 0; }

int cuStreamWriteValue32_v2(void *s, u64 p, u32 v, u32 flags) { CTX("cuStreamWriteValue32(stream=%p, addr=%#llx, value=%u, flags=%u)", s, p, v, flags); return 0; }
int cuStreamWriteValue64_v2(void *s, u64 p, u64 v, u32 flags) { CTX("cuStreamWriteValue64(stream=%p, addr=%#llx, value=%llu, flags=%u)", s, p, v, flags); return 0; }
int cuStreamWaitValue32_v2(void *s, u64 p, u32 v, u32 flags) { CTX("cuStreamWaitValue32(stream=%p, addr=%#llx, value=%u, flags=%#x)", s, p, v, flags); return 0; }
int cuStreamWaitValue64_v2(void *s, u64 p, u64 v, u32 flags) { CTX("cuStreamWaitValue64(stream=%p, addr=%#llx, value=%llu, flags=%#x)", s, p, v, flags); return 0; }
int cuStreamBatchMemOp_v2(void *s, u32 n, const memop *ops, u32 flags) {
	char list[400];
	CTX("cuStreamBatchMemOp(stream=%p,%s, flags=%u)", s, ops_in(list, sizeof list, ops, n), flags);
	return 0;
}

int cuMemAllocManaged(u64 *p, size_t n, u32 flags) { CTX("cuMemAllocManaged(bytes=%zu, flags=%u)", n, flags); *p = 0xa0001000; return 0; }
int cuStreamAttachMemAsync(void *s, u64 p, size_t n, u32 flags) { CTX("cuStreamAttachMemAsync(stream=%p, dptr=%#llx, n=%zu, flags=%u)", s, p, n, flags); return 0; }

// CUdevResource, and what a test can tell of one: its type and numbers, with marks in the padding that must survive.
typedef struct { u32 type; unsigned char padding[92]; u32 sms, least, aligned; unsigned char rest[36]; } resource;
_Static_assert(sizeof(resource) == 144 && offsetof(resource, sms) == 96, "as in cuda.h");
static resource made(u32 sms) { resource r = {.type = 1, .sms = sms, .least = 8, .aligned = 4}; r.padding[91] = sms; r.rest[35] = sms + 1; return r; }
static int sound(const resource *r) { return r->padding[91] == r->sms && r->rest[35] == r->sms + 1; }
int cuDeviceGetDevResource(int dev, resource *r, u32 type) { LOG("cuDeviceGetDevResource(dev=%d, type=%u)", dev, type); *r = made(132); return 0; }
int cuDevSmResourceSplitByCount(resource *parts, u32 *groups, const resource *in, resource *rest, u32 flags, u32 least) {
	LOG("cuDevSmResourceSplitByCount(groups=%u, in=%u sound=%d, flags=%u, min=%u)", *groups, in->sms, sound(in), flags, least);
	if (!flags) return 915;
	parts[0] = made(16), parts[1] = made(24), *rest = made(3);
	*groups = 2;
	return 0;
}
int cuDevResourceGenerateDesc(void **desc, const resource *r, u32 n) {
	LOG("cuDevResourceGenerateDesc(%u sound=%d, %u sound=%d, n=%u)", r[0].sms, sound(r), r[n - 1].sms, sound(r + n - 1), n);
	*desc = (void *)0xde;
	return 0;
}
int cuGreenCtxCreate(void **g, void *desc, int dev, u32 flags) { LOG("cuGreenCtxCreate(desc=%p, dev=%d, flags=%u)", desc, dev, flags); *g = (void *)0x9c; return 0; }
int cuGreenCtxDestroy(void *g) { LOG("cuGreenCtxDestroy(green=%p)", g); return 0; }
int cuGreenCtxGetDevResource(void *g, resource *r, u32 type) { LOG("cuGreenCtxGetDevResource(green=%p, type=%u)", g, type); *r = made(40); return 0; }
int cuCtxFromGreenCtx(void **ctx, void *g) { LOG("cuCtxFromGreenCtx(green=%p)", g); *ctx = (void *)0xc9; return 0; }
int cuGreenCtxStreamCreate(void **s, void *g, u32 flags, int priority) { LOG("cuGreenCtxStreamCreate(green=%p, flags=%u, priority=%d)", g, flags, priority); *s = (void *)0x59; return 0; }
int cuStreamGetCtx_v2(void *s, void **ctx, void **g) { CTX("cuStreamGetCtx_v2(stream=%p)", s); *ctx = (void *)0xc1; *g = (void *)0x9c; return 0; }
int cuStreamGetGreenCtx(void *s, void **g) { CTX("cuStreamGetGreenCtx(stream=%p)", s); *g = (void *)0x9c; return 0; }
int cuStreamGetDevResource(void *s, resource *res, u32 type) { CTX("cuStreamGetDevResource(stream=%p, type=%u)", s, type); *res = made(8); return 0; }

// Another ABI of a function's name, or its per-thread variant: to be called with these arguments is a fault.
static int wrong(void) { LOG("another ABI"); return 999; }

static const struct { const char *name; int version; void *fn; } table[] = {
#define F(name, version) {#name, version, (void *)name},
#define F2(name, version) {#name, version, (void *)name##_v2},
#define W(name, version) {#name, version, (void *)wrong},
	F(cuDriverGetVersion, 2020) F(cuDeviceGetCount, 2000) F(cuDeviceGetName, 2000) F(cuDeviceGetAttribute, 2000)
	W(cuDeviceTotalMem, 2000) F2(cuDeviceTotalMem, 3020)
	F(cuDevicePrimaryCtxRetain, 7000) W(cuDevicePrimaryCtxRelease, 7000) F2(cuDevicePrimaryCtxRelease, 11000)
	F(cuCtxGetCurrent, 4000) F(cuCtxSetCurrent, 4000) F(cuCtxGetDevice, 2000) W(cuCtxGetDevice, 13000)
	F(cuCtxGetStreamPriorityRange, 5050) F(cuCtxSynchronize, 2000) W(cuCtxSynchronize, 13000)
	F(cuThreadExchangeStreamCaptureMode, 10010)
	F(cuStreamCreateWithPriority, 5050) W(cuStreamDestroy, 2000) F2(cuStreamDestroy, 4000) F(cuStreamQuery, 2000)
	F(cuStreamSynchronize, 2000) F(cuStreamWaitEvent, 3020) F(cuStreamGetFlags, 5050) F(cuStreamGetPriority, 5050)
	F(cuStreamGetId, 12000) F(cuStreamGetCtx, 9020) F2(cuStreamGetCtx, 12050) F(cuStreamGetDevice, 12080)
	F(cuEventCreate, 2000) W(cuEventDestroy, 2000) F2(cuEventDestroy, 4000) F(cuEventRecord, 2000) F(cuEventQuery, 2000)
	F(cuEventSynchronize, 2000) F(cuEventElapsedTime, 2000)
	W(cuMemAlloc, 2000) F2(cuMemAlloc, 3020) W(cuMemFree, 2000) F2(cuMemFree, 3020) F(cuMemHostAlloc, 2020) F(cuMemFreeHost, 2000)
	W(cuMemcpyHtoD, 2000) F2(cuMemcpyHtoD, 3020) W(cuMemcpyDtoH, 2000) F2(cuMemcpyDtoH, 3020)
	W(cuMemcpyHtoDAsync, 2000) F2(cuMemcpyHtoDAsync, 3020)
	W(cuMemcpyDtoHAsync, 2000) F2(cuMemcpyDtoHAsync, 3020) W(cuMemcpyDtoDAsync, 3000) F2(cuMemcpyDtoDAsync, 3020)
	W(cuMemHostRegister, 4000) F2(cuMemHostRegister, 6050) F(cuMemHostUnregister, 4000) W(cuMemcpy2DAsync, 2000) F2(cuMemcpy2DAsync, 3020) F(cuMemcpyPeerAsync, 4000)
	F(cuMemsetD8Async, 3020) F(cuMemsetD16Async, 3020) F(cuMemsetD32Async, 3020)
	F(cuModuleLoadDataEx, 2010) F(cuModuleUnload, 2000) F(cuModuleGetFunction, 2000) F(cuFuncGetParamInfo, 12040)
	F(cuLaunchKernel, 4000) F(cuLaunchHostFunc, 10000) F2(cuLaunchHostFunc, 13020)
	F(cuStreamAddCallback, 5000) F(cuStreamGetAttribute, 11000) F(cuStreamSetAttribute, 11000) F(cuStreamCopyAttributes, 11000)
	W(cuCtxCreate, 2000) F2(cuCtxCreate, 3020) W(cuCtxCreate, 11040) W(cuCtxCreate, 12050)
	W(cuCtxPopCurrent, 2000) F2(cuCtxPopCurrent, 4000) W(cuCtxDestroy, 2000) F2(cuCtxDestroy, 4000)
	W(cuStreamWriteValue32, 8000) F2(cuStreamWriteValue32, 11070) W(cuStreamWriteValue64, 9000) F2(cuStreamWriteValue64, 11070)
	W(cuStreamWaitValue32, 8000) F2(cuStreamWaitValue32, 11070) W(cuStreamWaitValue64, 9000) F2(cuStreamWaitValue64, 11070)
	W(cuStreamBatchMemOp, 8000) F2(cuStreamBatchMemOp, 11070)
	F(cuMemAllocManaged, 6000) F(cuStreamAttachMemAsync, 6000)
	F(cuDeviceGetDevResource, 12040) F(cuDevSmResourceSplitByCount, 12040) F(cuDevResourceGenerateDesc, 12040)
	F(cuGreenCtxCreate, 12040) F(cuGreenCtxDestroy, 12040) F(cuGreenCtxGetDevResource, 12040) F(cuCtxFromGreenCtx, 12040)
	F(cuGreenCtxStreamCreate, 12050) F(cuStreamGetGreenCtx, 12040) F(cuStreamGetDevResource, 13010)
	W(cuStreamBeginCapture, 10000) F2(cuStreamBeginCapture, 10010) F(cuStreamBeginCaptureToGraph, 12030) F(cuStreamEndCapture, 10000)
	F(cuStreamBeginRecaptureToGraph, 13030)
	F(cuStreamIsCapturing, 10000) W(cuStreamGetCaptureInfo, 10010) W(cuStreamGetCaptureInfo, 11030)
	{"cuStreamGetCaptureInfo", 12030, (void *)cuStreamGetCaptureInfo_v3},
	W(cuStreamUpdateCaptureDependencies, 11030) F2(cuStreamUpdateCaptureDependencies, 12030) F(cuEventRecordWithFlags, 11010)
	F(cuGraphCreate, 10000) F(cuGraphDestroy, 10000) F(cuGraphGetNodes, 10000) W(cuGraphGetEdges, 10000) F2(cuGraphGetEdges, 12030)
	F(cuGraphNodeGetType, 10000) F(cuGraphExecDestroy, 10000) F(cuGraphLaunch, 10000)
	W(cuGraphAddNode, 12020) F2(cuGraphAddNode, 12030) F(cuGraphNodeSetParams, 12020) F(cuGraphExecNodeSetParams, 12020)
	F(cuGraphDestroyNode, 10000) F(cuGraphClone, 10000) F(cuGraphNodeFindInClone, 10000)
	W(cuGraphAddDependencies, 10000) F2(cuGraphAddDependencies, 12030) W(cuGraphRemoveDependencies, 10000) F2(cuGraphRemoveDependencies, 12030)
	F(cuGraphChildGraphNodeGetGraph, 10000) F(cuGraphHostNodeGetParams, 10000) W(cuGraphKernelNodeGetParams, 10000) F2(cuGraphKernelNodeGetParams, 12000)
	F(cuFuncGetName, 12030) F(cuGraphConditionalHandleCreate, 12030) F(cuGraphDebugDotPrint, 11030)
	F(cuGraphInstantiateWithParams, 12000) F(cuGraphUpload, 11010) W(cuGraphExecUpdate, 10020) F2(cuGraphExecUpdate, 12000)
	F(cuGraphNodeSetEnabled, 11060) F(cuGraphNodeGetEnabled, 11060)
	F(cuUserObjectCreate, 11030) F(cuUserObjectRelease, 11030) F(cuGraphRetainUserObject, 11030) F(cuGraphReleaseUserObject, 11030)
};

int cuGetProcAddress_v2(const char *name, void **fn, int version, u64 flags, int *status) {
	put("%s@%d flags=%llu\n", name, version, flags);
	*fn = 0;
	if (version > get(VERSION)) return 1;
	if (flags == 1 && strcmp(name, missing))
		for (size_t i = 0; i < sizeof table / sizeof *table; i++)
			if (!strcmp(table[i].name, name) && table[i].version <= version) *fn = table[i].fn; // ascending
	*status = !*fn;
	return 0;
}
