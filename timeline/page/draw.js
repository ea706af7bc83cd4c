// draw.js: what is visible of the bars, the axis and the arrows. What is narrower than some pixels is drawn as one with its neighbours.
let drawn = []; // bars and clusters, by the number in data-bar
function draw() {
  const part = document.createDocumentFragment();
  drawn = [];
  const ticks = ticksOf(view);
  for (const t of ticks.list) shape("line", { class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height }, part);
  for (const y of headings) if (y > 0) shape("line", { class: "rule", x1: 0, x2: view.width, y1: y, y2: y }, part);
  for (const lane of lanes) for (const row of lane.rows) drawRow(row, part);
  drawArrows(part);
  svg.replaceChildren(part);
  drawAxis(ticks);
  svg.dataset.from = Math.round(view.from);
  svg.dataset.to = Math.round(view.to);
  drawWindow();
}

const small = 2.5, tile = 4; // pixels

// drawRow draws the visible bars of a row. Small ones become clusters, of bars with no visible gap between them, as wide as a tile.
function drawRow(row, part) {
  let cluster = null;
  const flush = () => {
    if (cluster) cluster.bars.length === 1 ? drawBar(cluster.bars[0], part) : drawCluster(cluster, part);
    cluster = null;
  };
  for (let i = firstAfter(row, view.from - 1); i < row.length && row[i].start <= view.to; i++) {
    const bar = row[i];
    if (hidden.has(spans.kind[bar.span])) continue;
    const left = x(bar.start), right = x(bar.end);
    if (right - left >= small || isSelected(bar)) {
      flush();
      drawBar(bar, part);
      continue;
    }
    if (cluster && (left - cluster.right >= 1 || left - cluster.left >= tile)) flush();
    cluster ||= { left, right, bars: [] };
    cluster.right = Math.max(right, left + 1);
    cluster.bars.push(bar);
  }
  flush();
}

function drawBar(bar, part) {
  const i = bar.span, left = Math.max(x(bar.start), -9), right = Math.min(x(bar.end), view.width + 9), width = Math.max(right - left - 0.5, 1.5);
  let look = `bar ${classOf(i)}`;
  if (lanes[bar.lane].calls) look += " call";
  if (bar.open) look += " open";
  if (spans.error[i]) look += " failed";
  if (!matches(i)) look += " dim";
  if (isSelected(bar)) look += " selected";
  const g = shape("g", { class: look, "data-bar": drawn.push({ bar }) - 1 }, part);
  shape("rect", { x: left, y: top(bar), width, height: barHeight, rx: width > 6 ? 3 : 0 }, g);
  const from = Math.max(left, 0), room = Math.floor((Math.min(right, view.width) - from - 9) / 6.1);
  if (room < 3) return;
  const name = lanes[bar.lane].calls ? text("op", i) || nameOf(i) : nameOf(i);
  shape("text", { x: from + 5, y: top(bar) + 12.5 }, g).textContent = name.length > room ? name.slice(0, room - 1) + "…" : name;
}

// drawCluster draws bars as one, in the colour of the kind that took longest, and the paler the more of it is empty.
function drawCluster({ left, right, bars }, part) {
  const first = bars[0], took = new Map();
  let all = 0;
  for (const b of bars) {
    all += b.end - b.start;
    const look = classOf(b.span);
    took.set(look, (took.get(look) || 0) + b.end - b.start + 1);
  }
  const width = Math.max(right - left, 1.5);
  let look = `bar many ${[...took].reduce((most, k) => k[1] > most[1] ? k : most)[0]}`;
  if (lanes[first.lane].calls) look += " call";
  if (!bars.some(b => matches(b.span))) look += " dim";
  const g = shape("g", { class: look, "data-bar": drawn.push({ cluster: bars }) - 1 }, part);
  const share = all / (width / view.width * (view.to - view.from));
  shape("rect", { x: left, y: top(first), width, height: barHeight, opacity: Math.min(0.3 + 0.7 * share, 1).toFixed(2) }, g);
}

// ticksOf are round times in view, at least 110 pixels apart, and the unit to write them in.
function ticksOf({ from, to, width }) {
  const rough = (to - from) / Math.max(width / 110, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max([1, 2, 5, 10].find(f => f * power >= rough) * power, 1), list = [];
  for (let t = Math.max(0, Math.ceil(from / step)) * step; t <= to && list.length < 200; t += step) list.push(t);
  return { list, step };
}

function drawAxis({ list, step }) {
  const part = document.createDocumentFragment();
  const [unit, size] = units.find(u => step >= u[1]) || units[3];
  for (const t of list) {
    shape("line", { x1: x(t), x2: x(t), y1: 18, y2: 26 }, part);
    const last = x(t) > view.width - 60;
    shape("text", { x: x(t) + (last ? -4 : 4), y: 16, "text-anchor": last ? "end" : "start" }, part).textContent = `${(t / size).toLocaleString("en", { maximumFractionDigits: 0 }).replaceAll(",", "\u2009")} ${unit}`;
  }
  axis.replaceChildren(part);
}

// drawArrows draws what the selected operation waited for, what waited for it, and what it belongs to.
function drawArrows(part) {
  if (!selected) return;
  const i = selected.span, run = runs.get(i), call = calls.get(i);
  if (run && call) arrow(call, call.start, run, run.start, "queued", part);
  const parent = runs.get(parentOf(i));
  if (parent && (call || run)) arrow(parent, (call || run).start, call || run, (call || run).start, "queued", part);
  if (!run) return;
  for (const to of (within.get(i) || []).slice(0, 100)) {
    const bar = calls.get(to) || runs.get(to);
    if (bar) arrow(run, Math.max(run.start, Math.min(bar.start, run.end)), bar, bar.start, "queued", part);
  }
  for (const from of before(i)) if (runs.has(from)) arrow(runs.get(from), runs.get(from).end, run, arrival(run), "before", part);
  for (const to of (behind.get(i) || []).slice(0, 500)) if (runs.has(to)) arrow(run, run.end, runs.get(to), arrival(runs.get(to)), "behind", part);
}

// arrival is when what a bar waited for let it go on.
const arrival = bar => ["wait", "sync"].includes(kindOf(bar.span)) ? bar.end : bar.start;

function arrow(from, leaves, to, arrives, look, part) {
  const clamp = px => Math.min(Math.max(px, -2000), view.width + 2000);
  const x1 = clamp(x(leaves)), y1 = middle(from), x2 = clamp(x(arrives)), y2 = middle(to);
  const bend = Math.max(Math.abs(x2 - x1) / 2, 22);
  shape("path", { class: `arrow ${look}`, d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }, part);
  shape("path", { class: `head ${look}`, d: `M${x2 - 7} ${y2 - 4}L${x2} ${y2}L${x2 - 7} ${y2 + 4}` }, part);
}
