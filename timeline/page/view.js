// view.js: which part of the time is shown, and where things are.
const byId = id => document.getElementById(id);
const canvas = byId("canvas"), svg = byId("bars"), axis = byId("axis"), overview = byId("overview"), plot = byId("plot");
const rowHeight = 20, barHeight = 17, lanePad = 5, groupHeight = 24, margin = 0.01;

const view = { from: -margin * whole, to: (1 + margin) * whole, width: 1 };
const least = Math.min(20, whole); // nanoseconds across
const x = t => (t - view.from) / (view.to - view.from) * view.width;
const timeAt = px => view.from + px / view.width * (view.to - view.from);
const hidden = new Set(); // numbers of kinds

// layout puts the lanes below each other, and their names beside them.
let height = 0;
const headings = [];
function layout() {
  const labels = byId("labels");
  let group = "";
  for (const lane of lanes) {
    if (lane.group !== group) {
      group = lane.group;
      headings.push(height);
      labels.append(element("h3", {}, group));
      height += groupHeight;
    }
    lane.y = height + lanePad;
    lane.height = lane.rows.length * rowHeight + 2 * lanePad;
    height += lane.height;
    const label = element("div", { title: `${group}: ${lane.name}` }, lane.name);
    label.style.height = lane.height + "px";
    labels.append(label);
  }
  svg.setAttribute("height", Math.max(height, 40));
}
const top = bar => lanes[bar.lane].y + bar.row * rowHeight;
const middle = bar => top(bar) + barHeight / 2;

// show shows the time between from and to, as far as that is allowed.
function show(from, to) {
  const most = (1 + 2 * margin) * whole;
  const width = Math.min(Math.max(to - from, least), most);
  from = (from + to - width) / 2;
  from = Math.min(Math.max(from, -margin * whole), (1 + margin) * whole - width);
  [view.from, view.to] = [from, from + width];
  redraw();
}
const showAll = () => show(-margin * whole, (1 + margin) * whole);
const move = share => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

// zoom shows less (factor below 1) or more, with what is at px staying there.
function zoom(factor, px = view.width / 2) {
  const t = timeAt(px), width = Math.max((view.to - view.from) * factor, least);
  const from = t - px / view.width * width;
  show(from, from + width);
}

// showBar moves the view so that bar is seen; near zooms in until it is large.
function showBar(bar, near) {
  const length = Math.max(bar.end - bar.start, 1), width = view.to - view.from;
  if (near) show(bar.start - 0.75 * length, bar.end + 0.75 * length);
  else if (bar.end < view.from + 0.03 * width || bar.start > view.to - 0.03 * width) show((bar.start + bar.end - width) / 2, (bar.start + bar.end + width) / 2);
  const y = top(bar);
  if (y < plot.scrollTop || y + rowHeight + 26 > plot.scrollTop + plot.clientHeight) plot.scrollTop = y - plot.clientHeight / 2;
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

const svgSpace = "http://www.w3.org/2000/svg";
function shape(name, attributes, parent) {
  const e = document.createElementNS(svgSpace, name);
  for (const a in attributes) e.setAttribute(a, attributes[a]);
  if (parent) parent.append(e);
  return e;
}
function element(name, attributes, ...content) {
  const e = document.createElement(name);
  for (const a in attributes) e.setAttribute(a, attributes[a]);
  e.append(...content);
  return e;
}
