#!/usr/bin/env bash
# How many statements of package cuda and of softcuda their tests reach, child processes aside; fails where it is fewer than 90 %.
# Takes about two minutes. With a file's name, the functions that are not reached whole go there.
set -euo pipefail
least=90
out=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
module=$(go list -m)
profile=$(mktemp)
trap 'rm -f "$profile"' EXIT

go test -coverpkg="$module,$module/softcuda" -coverprofile="$profile" . ./softcuda >&2
[ -z "$out" ] || go tool cover -func="$profile" | sed "s,^$module/,," | awk '$NF != "100.0%" && $1 != "total:"' >"$out"

# A block is listed once for each test binary.
awk -v least="$least" '
  NR > 1 { n[$1] = $2; if ($3 > 0) hit[$1] = 1 }
  END {
    for (block in n) {
      file = block; sub(/:.*/, "", file); sub(/\/[^\/]*$/, "", file)
      all[file] += n[block]; if (block in hit) reached[file] += n[block]
    }
    for (pkg in all) {
      share = 100 * reached[pkg] / all[pkg]
      printf "%-40s %5d of %5d statements, %.1f %%\n", pkg, reached[pkg], all[pkg], share
      if (share < least) { printf "fewer than %d %%\n", least; failed = 1 }
    }
    exit failed
  }' "$profile"
