#!/usr/bin/env bash
# Runs the bundle that scripts/gpu-build.sh made, on a machine with an NVIDIA GPU; no Go is needed.
#
#   ./run.sh [folder for results] [what...]      what: example tool conformance seam model bench; all of them, unless told otherwise;
#                                                and probes, which ask the driver itself and need nvcc, if told so
#
# BUILDS are the builds to run (cgo purego, unless set), and LIMIT is the time that the conformance suite may take in each build (150s, unless set).
# LARGEST is the largest copy that the command measures, in MiB. ONLY is a regular expression that selects measurements of the benchmark by name.
# HOSTLAUNCH_REQUIRE_GPU says how many GPUs there must be (1, unless set): what would be skipped for want of one fails. Where doctor finds
# none at all, nothing is run (exit status 2); HOSTLAUNCH_REQUIRE_GPU=0 goes on without.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=$(mkdir -p "${1:-$here/results}" && cd "${1:-$here/results}" && pwd)
shift || true
what=${*:-example tool conformance seam model bench}
cd "$here"
export HOSTLAUNCH_REQUIRE_GPU=${HOSTLAUNCH_REQUIRE_GPU:-1}
failed=0

example() { # the same proof from both drivers
  for driver in nvidia software; do
    HOSTLAUNCH_DRIVER=$driver "./01-hostlaunch.$1" | tee "$results/example.$driver.$1.txt" || failed=1
  done
  cmp <(tail -n +2 "$results/example.nvidia.$1.txt") <(tail -n +2 "$results/example.software.$1.txt") || failed=1
}

tool() { # what a person meets first
  "./hostlaunch.$1" doctor | tee "$results/doctor.$1.txt" || failed=1
  "./hostlaunch.$1" demo --timeline "$results/timeline.$1.html" --trace "$results/trace.$1.json" >"$results/demo.$1.txt" 2>&1 || failed=1
  tail -n 20 "$results/demo.$1.txt"
  local floor=()
  compiled && floor=(--floor ./floor)
  "./hostlaunch.$1" bench "${floor[@]}" --largest "${LARGEST:-1024}" --plots "$results/plots.$1,png" --json >"$results/figures.$1.json" || failed=1
}

compiled() { # the C++ program is, or can be
  [ -x floor ] || { type nvcc >/dev/null 2>&1 && nvcc -O3 -o floor floor.cpp -lcuda; }
}

conformance() {
  "./conformance.$1" -test.v -test.run TestConformance -test.timeout ${LIMIT:-150s} >"$results/conformance.$1.txt" 2>&1 || failed=1
  grep -E '^(---|    ---|PASS|FAIL|ok)|panic:' "$results/conformance.$1.txt" | grep -v -- '--- PASS' | head -60
  echo "conformance, $1: $(grep -cE '^    --- PASS: TestConformance/' "$results/conformance.$1.txt") cases passed," \
    "$(grep -cE '^    --- FAIL: TestConformance/' "$results/conformance.$1.txt") failed," \
    "$(grep -cE '^    --- SKIP: TestConformance/' "$results/conformance.$1.txt") skipped"
}

seam() { # what package cuda lets no program do
  "./conformance.$1" -test.v -test.run TestSeam -test.timeout ${LIMIT:-150s} >"$results/seam.$1.txt" 2>&1 || failed=1
  tail -n 1 "$results/seam.$1.txt"
}

model() { # random programs against the models of stream order and of tasks, and random graphs
  "./conformance.$1" -test.v -test.run '^(TestModel|TestTaskModel|TestRandomGraphs)$' -test.timeout ${LIMIT:-150s} 2>&1 | tee "$results/model.$1.txt" || failed=1
}

bench() {
  local floor=()
  if compiled; then
    floor=(-floor ./floor -ptx kernels.ptx)
  else
    echo "no nvcc: without the C++ floor"
  fi
  "./bench.$1" "${floor[@]}" -only "${ONLY:-}" | tee "$results/bench.$1.md" || failed=1
}

probes() { # what the driver does by itself, whichever build
  for probe in gaps attach; do
    nvcc -O2 -o "$probe" "$probe.cpp" -lcuda && "./$probe" kernels.ptx | tee "$results/$probe.md" || failed=1
  done
}

builds=${BUILDS:-cgo purego}
if [ "$HOSTLAUNCH_REQUIRE_GPU" != 0 ]; then
  doctor=$("./hostlaunch.${builds%% *}" doctor)
  if [ $? = 2 ]; then
    echo "$doctor" >&2
    echo "run.sh: there is no usable GPU here, so nothing was run; HOSTLAUNCH_REQUIRE_GPU=0 goes on without" >&2
    exit 2
  fi
fi
for build in $builds; do
  for step in $what; do
    echo "== $step, $build"
    "$step" "$build"
  done
done
exit $failed
