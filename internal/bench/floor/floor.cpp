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
#include <fstream>
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
static CUfunction spin;

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

static CUfunction stamp;
static CUdeviceptr stamps;
static volatile unsigned *words; // the first is the stream's word, the one 64 bytes on ours
static CUdeviceptr words_at;
static unsigned round_number;

// poller answers the stream's word, until it is stopped.
struct poller {
  std::atomic<bool> stop{false};
  std::thread thread;
  poller() : thread([this] {
    unsigned seen = words[0];
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
    keep_busy(30000);
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
    if (what == "wake\n") ns = wake(500);
    printf("%.1f\n", ns);
    fflush(stdout);
  }
}
