"use strict";
// data.js: the trace, and the bars that are made of it.
const trace = JSON.parse(document.getElementById("trace").textContent);
const spans = trace.spans, count = (spans.id || []).length;
const text = (column, i) => trace.texts[spans[column][i]];
const nameOf = i => text("name", i);
const kindOf = i => trace.kinds[2 * spans.kind[i]];
const classOf = i => trace.kinds[2 * spans.kind[i] + 1];
const streamOf = i => spans.stream[i] < 0 ? "" : trace.streams[spans.stream[i]];
const whole = Math.max(trace.duration, 1);

// A bar is {lane, row, at, span, start, end, open}; its row is in the order of time, without overlaps.
const lanes = (trace.lanes || []).map((lane, n) => ({ ...lane, number: n, rows: lane.rows.map((list, r) => rowOf(lane, n, list, r)) }));
const runs = new Map(), calls = new Map(); // bars by span
for (const lane of lanes) for (const row of lane.rows) for (const bar of row) (lane.calls ? calls : runs).set(bar.span, bar);

function rowOf(lane, number, list, row) {
  const bars = list.map((span, at) => {
    let start = spans.start[span], end = spans.end[span];
    if (lane.calls || start < 0) [start, end] = [spans.enqueued[span], spans.returned[span]];
    const open = end < 0;
    return { lane: number, row, at, span, start, end: open ? Math.max(whole, start) : end, open };
  });
  for (let i = 1; i < bars.length; i++) bars[i - 1].end = Math.min(bars[i - 1].end, bars[i].start); // within the clocks' accuracy
  return bars;
}

// behind are the spans that waited for a span; within, those that belong to one.
const behind = new Map(), within = new Map();
const add = (map, key, value) => map.has(key) ? map.get(key).push(value) : map.set(key, [value]);
for (const [i, list] of Object.entries(trace.after || {})) for (const from of list) add(behind, from, +i);
for (const [i, parent] of Object.entries(trace.parent || {})) add(within, parent, +i);
const before = i => (trace.after || {})[i] || [];
const parentOf = i => (trace.parent || {})[i];

// firstAfter is the index of the first of bars that ends after t.
function firstAfter(bars, t) {
  let low = 0, high = bars.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (bars[mid].end > t) high = mid; else low = mid + 1;
  }
  return low;
}

const units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

// duration is a time in nanoseconds, to four digits.
function duration(ns) {
  const [unit, size] = units.find(u => ns >= u[1]) || units[3];
  return `${+(ns / size).toPrecision(4)} ${unit}`;
}

function bytes(n) {
  const list = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  for (; n >= 1000 && i < list.length - 1; i++) n /= 1000;
  return `${+n.toPrecision(3)} ${list[i]}`;
}

const rate = i => spans.bytes[i] > 0 && spans.start[i] >= 0 && spans.end[i] > spans.start[i] ? spans.bytes[i] / (spans.end[i] - spans.start[i]) : 0;
