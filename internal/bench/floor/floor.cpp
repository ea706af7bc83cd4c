// The C++ floor of the benchmark: what the driver's own calls cost a C++ program. It reads the name of a measurement a line
// from its standard input, and answers with one number, in ns.
//
//   nvcc -O3 -o floor floor.cpp -lcuda && ./floor kernels.ptx
#include <cuda.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <time.h>
#include <vector>

static void check(CUresult r, const char *what) {
  if (r != CUDA_SUCCESS) {
    fprintf(stderr, "floor: %s: %d\n", what, (int)r);
    exit(1);
  }
}
#define CHECK(call) check(call, #call)

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

static std::atomic<long> count;
static void CUDA_CB count_one(void *) { count++; }

static CUstream stream;
static CUfunction spin, nothing;

static void keep_busy(unsigned long long ns) {
  void *args[] = {&ns};
  CHECK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, args, nullptr));
}

static void sync() { CHECK(cuStreamSynchronize(stream)); }

// many enqueues n functions on an idle stream; the time to enqueue, or until all have run.
static double many(int n, bool whole) {
  double start = now();
  for (int i = 0; i < n; i++) CHECK(cuLaunchHostFunc(stream, count_one, nullptr));
  double queued = now();
  sync();
  return ((whole ? now() : queued) - start) / n;
}

static double behind_busy(int n) {
  keep_busy(20000000);
  double start = now();
  for (int i = 0; i < n; i++) CHECK(cuLaunchHostFunc(stream, count_one, nullptr));
  double queued = now();
  sync();
  return (queued - start) / n;
}

static double round_trip(int n) {
  std::vector<double> v;
  for (int i = 0; i < n; i++) {
    double start = now();
    CHECK(cuLaunchHostFunc(stream, count_one, nullptr));
    sync();
    v.push_back(now() - start);
  }
  return median(v);
}

// wake waits for an event behind a kernel of 100 us: launch, record and wake-up, without the time that the kernel spins.
static double wake(int n) {
  CUevent event;
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  std::vector<double> v;
  for (int i = 0; i < n; i++) {
    double start = now();
    keep_busy(100000);
    CHECK(cuEventRecord(event, stream));
    CHECK(cuEventSynchronize(event));
    v.push_back(now() - start - 100000);
  }
  CHECK(cuEventDestroy(event));
  return median(v);
}

// Memory for copies, made for the largest so far and kept. Pageable memory is touched, but for "fresh", which is made anew.
static CUdeviceptr device_memory;
static char *pinned_memory, *pageable_memory;
static size_t room;

static void make_room(size_t n) {
  if (n <= room) return;
  if (room) {
    CHECK(cuMemFree(device_memory));
    CHECK(cuMemFreeHost(pinned_memory));
    free(pageable_memory);
  }
  CHECK(cuMemAlloc(&device_memory, n));
  CHECK(cuMemHostAlloc((void **)&pinned_memory, n, 0));
  pageable_memory = (char *)malloc(n);
  memset(pageable_memory, 1, n);
  memset(pinned_memory, 1, n);
  room = n;
}

// copied copies n bytes and waits: the time from the call to the end.
static double copied(bool down, const std::string &kind, size_t n) {
  make_room(n);
  double start = now();
  char *host = kind == "pinned" ? pinned_memory : kind == "fresh" ? (char *)malloc(n) : pageable_memory;
  if (down)
    CHECK(cuMemcpyDtoHAsync(host, device_memory, n, stream));
  else
    CHECK(cuMemcpyHtoDAsync(device_memory, host, n, stream));
  sync();
  double took = now() - start;
  if (kind == "fresh") free(host);
  return took;
}

// A graph of n nodes in a chain: host nodes and kernels in turn, or, for n < 0, kernels alone.
static CUgraph chain(int n) {
  CUgraph graph;
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode last = nullptr;
  for (int i = 0; i < abs(n); i++) {
    CUgraphNodeParams p = {};
    if (i % 2 == 1 || n < 0) {
      p.type = CU_GRAPH_NODE_TYPE_KERNEL;
      p.kernel.func = nothing;
      p.kernel.gridDimX = p.kernel.gridDimY = p.kernel.gridDimZ = p.kernel.blockDimX = p.kernel.blockDimY = p.kernel.blockDimZ = 1;
    } else {
      p.type = CU_GRAPH_NODE_TYPE_HOST;
      p.host.fn = count_one;
    }
    CUgraphNode after = last;
    CHECK(cuGraphAddNode(&last, graph, &after, nullptr, i ? 1 : 0, &p));
  }
  return graph;
}

static double graph_launch(int nodes, int n) {
  CUgraph graph = chain(nodes);
  CUgraphExec exec;
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  std::vector<double> v;
  for (int i = 0; i < n; i++) {
    double start = now();
    CHECK(cuGraphLaunch(exec, stream));
    sync();
    v.push_back(now() - start);
  }
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  return median(v);
}

static void CUDA_CB let_go(void *p) { delete (std::function<void()> *)p; }
static void CUDA_CB call_it(void *p) { (*(std::function<void()> *)p)(); }

// The time to add a host node, without an owner or with a closure that a user object carries, or to make and destroy graph
// and executable as well.
static double graph_build(int n, bool owned, bool whole) {
  double start = now();
  CUgraph graph;
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode last = nullptr;
  for (int i = 0; i < n; i++) {
    CUgraphNodeParams p = {};
    p.type = CU_GRAPH_NODE_TYPE_HOST;
    p.host.fn = count_one;
    if (owned) {
      auto *closure = new std::function<void()>([] { count++; });
      p.host.fn = call_it;
      p.host.userData = closure;
      CUuserObject object;
      CHECK(cuUserObjectCreate(&object, closure, let_go, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
      CHECK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    }
    CUgraphNode after = last;
    CHECK(cuGraphAddNode(&last, graph, &after, nullptr, i ? 1 : 0, &p));
  }
  double built = now();
  if (whole) {
    CUgraphExec exec;
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphExecDestroy(exec));
  }
  CHECK(cuGraphDestroy(graph));
  return ((whole ? now() : built) - start) / n;
}

// repeated is the median of some runs, one right after another.
template <class F> static double repeated(F measure) {
  std::vector<double> v;
  for (int i = 0; i < 9; i++) v.push_back(measure());
  return median(v);
}

static double graph_capture(int n) {
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  double start = now();
  for (int i = 0; i < n; i++) CHECK(cuLaunchHostFunc(stream, count_one, nullptr));
  double took = now() - start;
  CUgraph graph;
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphDestroy(graph));
  return took / n;
}

static CUfunction stamp;
static CUdeviceptr stamps;
static volatile unsigned *words; // the first is the stream's word, the one 64 bytes on ours
static CUdeviceptr words_at;
static unsigned round_number;

// poller answers the stream's word, until it is stopped.
struct poller {
  std::atomic<bool> stop{false};
  std::thread thread;
  poller() : thread([this, seen = words[0]]() mutable { // from before anything is queued, however late the thread begins
    while (!stop) {
      unsigned now = words[0];
      if (now != seen) {
        seen = now;
        count++;
        words[16] = now;
      }
    }
  }) {}
  ~poller() {
    stop = true;
    thread.join();
  }
};

static void write_and_wait() {
  CUstreamBatchMemOpParams ops[2] = {};
  round_number++;
  ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  ops[0].writeValue.address = words_at;
  ops[0].writeValue.value = round_number;
  ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  ops[1].waitValue.address = words_at + 64;
  ops[1].waitValue.value = round_number;
  ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  CHECK(cuStreamBatchMemOp(stream, 2, ops, 0));
}

static void launch_stamp(CUdeviceptr at) {
  void *args[] = {&at};
  CHECK(cuLaunchKernel(stamp, 1, 1, 1, 1, 1, 1, 0, stream, args, nullptr));
}

// gap is the time between the ends of two kernels, with something between them, on the device's clock.
template <typename between> static double gap(int n, between queue, double part) {
  std::vector<double> v;
  for (int i = 0; i < n; i++) {
    keep_busy(100000);
    launch_stamp(stamps);
    queue();
    launch_stamp(stamps + 8);
    sync();
    unsigned long long at[2];
    CHECK(cuMemcpyDtoH(at, stamps, sizeof at));
    v.push_back((double)at[1] - (double)at[0]);
  }
  std::sort(v.begin(), v.end());
  return v[(size_t)((v.size() - 1) * part)];
}

static double gap_spin(int n, double part) {
  poller p;
  return gap(n, write_and_wait, part);
}

static void launch_count() { CHECK(cuLaunchHostFunc(stream, count_one, nullptr)); }

static double round_spin(int n) {
  poller p;
  std::vector<double> v;
  for (int i = 0; i < n; i++) {
    double start = now();
    write_and_wait();
    sync();
    v.push_back(now() - start);
  }
  return median(v);
}

static void CUDA_CB sleep_20ms(void *) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

// eight is the time of eight host functions that sleep for 20 ms, on as many streams.
static double eight() {
  static CUstream streams[8];
  for (CUstream &s : streams)
    if (!s) CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  double start = now();
  for (CUstream s : streams) CHECK(cuLaunchHostFunc(s, sleep_20ms, nullptr));
  for (CUstream s : streams) CHECK(cuStreamSynchronize(s));
  return now() - start;
}

// idle is the processor time that the process takes in a second in which it does nothing.
static double idle() {
  std::this_thread::sleep_for(std::chrono::milliseconds(200)); // what is over may end
  timespec before, after;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  return (after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: floor kernels.ptx\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  std::string ptx((std::istreambuf_iterator<char>(file)), {});
  CHECK(cuInit(0));
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuModuleLoadData(&module, ptx.c_str()));
  CHECK(cuModuleGetFunction(&spin, module, "spin"));
  CHECK(cuModuleGetFunction(&nothing, module, "nothing"));
  CHECK(cuModuleGetFunction(&stamp, module, "stamp"));
  CHECK(cuMemAlloc(&stamps, 16));
  CHECK(cuMemHostAlloc((void **)&words, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  words[0] = words[16] = 0;
  CHECK(cuMemHostGetDevicePointer(&words_at, (void *)words, 0));
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    std::string what(line);
    double ns = -1;
    if (what == "draining\n") ns = many(20000, false);
    if (what == "busy\n") ns = behind_busy(500);
    if (what == "run\n") ns = many(20000, true);
    if (what == "roundtrip\n") ns = round_trip(2000);
    if (what == "gapnone\n") ns = gap(500, [] {}, 0.5);
    if (what == "gapblock\n") ns = gap(500, launch_count, 0.5);
    if (what == "gapspin\n") ns = gap_spin(500, 0.5);
    if (what == "gapspin99\n") ns = gap_spin(500, 0.99);
    if (what == "roundspin\n") ns = round_spin(2000);
    if (what == "eight\n") ns = eight();
    if (what == "idle\n") ns = idle();
    if (what == "wake\n") ns = wake(500);
    char direction[16], kind[16];
    size_t n;
    if (sscanf(line, "%15s %15s %zu", direction, kind, &n) == 3) ns = copied(!strcmp(direction, "down"), kind, n);
    if (what == "graph1\n") ns = graph_launch(1, 500);
    if (what == "graph20\n") ns = graph_launch(20, 200);
    if (what == "graphkernels\n") ns = graph_launch(-20, 500);
    if (what == "graphadd\n") ns = repeated([] { return graph_build(2000, false, false); });
    if (what == "graphown\n") ns = repeated([] { return graph_build(2000, true, false); });
    if (what == "graphmake\n") ns = repeated([] { return graph_build(2000, true, true); });
    if (what == "graphcapture\n") ns = repeated([] { return graph_capture(2000); });
    printf("%.1f\n", ns);
    fflush(stdout);
  }
}
