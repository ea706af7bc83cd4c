// How long a stream takes to go on from a wait-value, by how late the CPU answers: the time between the ends of two kernels with a
// write-value and a wait-value between them, and a thread that polls the first and satisfies the second after some delay. Between the two
// there may be fillers: further waits (already satisfied), writes or barriers.
//
//   nvcc -O2 -o gaps gaps.cpp -lcuda && ./gaps kernels.ptx
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
    fprintf(stderr, "gaps: %s: %d\n", what, (int)r);
    exit(1);
  }
}
#define CHECK(call) check(call, #call)

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static CUstream stream;
static CUfunction spin, stamp;
static volatile unsigned *words; // the stream's word, 64 bytes on ours, 128 on nobody's
static CUdeviceptr words_at;
static unsigned round_number;

static void launch(CUfunction f, void *arg) {
  void *args[] = {arg};
  CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, args, nullptr));
}

struct way {
  const char *name;
  int waits, writes, barriers;
  bool split; // the wait in a call of its own
};

static void write_and_wait(const way &w) {
  CUstreamBatchMemOpParams ops[16] = {};
  int n = 0;
  auto write = [&](CUdeviceptr to) {
    ops[n].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[n].writeValue.address = to;
    ops[n++].writeValue.value = round_number;
  };
  auto wait = [&](CUdeviceptr on) {
    ops[n].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[n].waitValue.address = on;
    ops[n].waitValue.value = round_number;
    ops[n++].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  };
  round_number++;
  write(words_at);
  for (int i = 0; i < w.waits; i++) wait(words_at);
  for (int i = 0; i < w.writes; i++) write(words_at + 128);
  for (int i = 0; i < w.barriers; i++) ops[n++].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
  if (w.split) {
    CHECK(cuStreamBatchMemOp(stream, n, ops, 0));
    n = 0;
  }
  wait(words_at + 64);
  CHECK(cuStreamBatchMemOp(stream, n, ops, 0));
}

// measure is the median gap, in us, when the answer comes so many ns after the signal is seen.
static double measure(const way &w, double delay, CUdeviceptr stamps) {
  std::atomic<bool> stop{false};
  std::thread poller([&, seen = words[0]]() mutable {
    while (!stop) {
      unsigned v = words[0];
      if (v == seen) continue;
      seen = v;
      for (double start = now(); now() - start < delay;) {
      }
      words[16] = v;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::vector<double> gaps;
  for (int i = 0; i < 150; i++) {
    unsigned long long ns = 60000, at[2]; // so that all is queued before the first stamp
    CUdeviceptr second = stamps + 8;
    launch(spin, &ns);
    launch(stamp, &stamps);
    write_and_wait(w);
    launch(stamp, &second);
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyDtoH(at, stamps, sizeof at));
    gaps.push_back((double)at[1] - (double)at[0]);
  }
  stop = true;
  poller.join();
  std::sort(gaps.begin(), gaps.end());
  return gaps[gaps.size() / 2] / 1e3;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: gaps kernels.ptx\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  std::string ptx((std::istreambuf_iterator<char>(file)), {});
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUdeviceptr stamps;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, ptx.c_str()));
  CHECK(cuModuleGetFunction(&spin, module, "spin"));
  CHECK(cuModuleGetFunction(&stamp, module, "stamp"));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&stamps, 16));
  CHECK(cuMemHostAlloc((void **)&words, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  for (int i = 0; i < 64; i++) words[i] = 0;
  CHECK(cuMemHostGetDevicePointer(&words_at, (void *)words, 0));
  const way ways[] = {{"none", 0, 0, 0, false},    {"none, two calls", 0, 0, 0, true}, {"1 wait", 1, 0, 0, false},  {"2 waits", 2, 0, 0, false},
                      {"4 waits", 4, 0, 0, false}, {"1 write", 0, 1, 0, false},        {"2 writes", 0, 2, 0, false}, {"4 writes", 0, 4, 0, false},
                      {"8 writes", 0, 8, 0, false}, {"4 barriers", 0, 0, 4, false}};
  const double delays[] = {0, 500, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 8000, 10000, 20000};
  printf("| fillers, gap in us |");
  for (double d : delays) printf(" %.1f us late |", d / 1e3);
  printf("\n|---|");
  for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) printf("---|");
  for (const way &w : ways) {
    printf("\n| %s |", w.name);
    for (double d : delays) printf(" %.1f |", measure(w, d, stamps));
  }
  printf("\n");
}
