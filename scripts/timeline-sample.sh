#!/usr/bin/env bash
# Makes a sample of hostlaunch demo's timeline: docs/samples/demo-DRIVER.html and .svg, and with a second argument a picture of the page.
#   scripts/timeline-sample.sh software docs/images/timeline.png
#   scripts/timeline-sample.sh nvidia
# Needs Go; the picture needs Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
driver=${1:?software or nvidia}
picture=${2:-}
page=docs/samples/demo-$driver.html
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
mkdir -p docs/samples
HOSTLAUNCH_DRIVER=$driver go run ./cmd/hostlaunch demo --batches 24 --every 6 --count 65536 --compute 2ms --timeline "$page" --trace "$trace"
go run ./cmd/hostlaunch trace "$trace" --svg "docs/samples/demo-$driver.svg"
if [ -n "$picture" ]; then
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,800 --screenshot="$PWD/$picture" \
    "file://$PWD/$page#select=rewrite&width=22000" 2>/dev/null
fi
ls -l docs/samples ${picture:+"$picture"}
