"""Copies between the GPU and ordinary memory with torch and CuPy, by size, for the same machine's table of internal/bench.

    python3 copies.py [largest MiB]

Each figure is the median of several copies, each waited for.
"""
import statistics
import sys
import time

import numpy as np

try:
    import torch
except ImportError:
    torch = None
try:
    import cupy
except ImportError:
    cupy = None


def median(copy, sync, rounds):
    times = []
    for i in range(rounds + 1):
        start = time.perf_counter()
        copy()
        sync()
        if i:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def ways(n):
    """The copies of n bytes: title, function, and what to wait with."""
    if torch:
        device = torch.ones(n, dtype=torch.uint8, device="cuda")
        host = torch.ones(n, dtype=torch.uint8)
        sync = torch.cuda.synchronize
        yield "torch copy_ to touched memory", lambda: host.copy_(device), sync
        yield "torch .cpu()", lambda: device.cpu(), sync
        yield "torch copy_ from ordinary memory", lambda: device.copy_(host), sync
    if cupy:
        array = cupy.ones(n, dtype=cupy.uint8)
        touched = np.ones(n, dtype=np.uint8)
        sync = cupy.cuda.runtime.deviceSynchronize
        yield "CuPy get(out=) to touched memory", lambda: array.get(out=touched), sync
        yield "CuPy asnumpy", lambda: cupy.asnumpy(array), sync
        yield "CuPy set from ordinary memory", lambda: array.set(touched), sync


def main():
    largest = int(sys.argv[1]) << 20 if len(sys.argv) > 1 else 1 << 30
    print("torch", torch and torch.__version__, "CuPy", cupy and cupy.__version__)
    n = 1 << 20
    while n <= largest:
        for title, copy, sync in ways(n):
            t = median(copy, sync, 5 if n >= 1 << 28 else 15)
            print(f"| {n >> 20} MiB | {title} | {t * 1e6:.1f} us, {n / t / 1e9:.2f} GB/s |", flush=True)
        n *= 4


main()
