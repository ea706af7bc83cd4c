// input.js: pointer, wheel and keys; and the beginning.
const pointers = new Map(); // those that are down: where they are
let moved = 0, part = null; // part: a selected part of the time, in pixels
const inside = event => event.clientX - svg.getBoundingClientRect().left;
const hit = event => {
  const g = event.target.closest && event.target.closest("[data-bar]");
  return g && drawn[g.dataset.bar];
};

svg.addEventListener("pointerdown", e => {
  if (e.button !== 0) return;
  pointers.set(e.pointerId, inside(e));
  moved = 0;
  part = e.shiftKey ? [inside(e), inside(e)] : null;
  svg.classList.add("moving");
});
addEventListener("pointermove", e => {
  if (!pointers.has(e.pointerId)) return;
  const was = pointers.get(e.pointerId), now = inside(e);
  moved += Math.abs(now - was);
  if (moved > 3 && !svg.hasPointerCapture(e.pointerId)) svg.setPointerCapture(e.pointerId);
  tip.hidden = true;
  if (part) return drawPart(now);
  if (pointers.size === 1) {
    move((was - now) / view.width);
  } else {
    const other = [...pointers].find(([id]) => id !== e.pointerId)[1];
    zoom(Math.max(Math.abs(was - other), 8) / Math.max(Math.abs(now - other), 8), (now + other) / 2);
  }
  pointers.set(e.pointerId, now);
});
function release(e) {
  if (!pointers.delete(e.pointerId)) return;
  svg.classList.remove("moving");
  if (part && moved > 5) show(timeAt(Math.min(...part)), timeAt(Math.max(...part)));
  part = null;
}
addEventListener("pointerup", release);
addEventListener("pointercancel", release);

// drawPart shows how long the selected part of the time is.
function drawPart(now) {
  part[1] = now;
  const [left, right] = [Math.min(...part), Math.max(...part)];
  svg.querySelector(".part")?.remove();
  shape("rect", { class: "part", x: left, y: 0, width: right - left, height }, svg);
  said.textContent = duration(timeAt(right) - timeAt(left));
}

svg.addEventListener("click", e => {
  if (moved > 3) return;
  const what = hit(e);
  if (what && what.cluster) showBar({ ...what.cluster[0], end: what.cluster.at(-1).end }, true);
  else select(what ? what.bar : null, true);
});
svg.addEventListener("dblclick", e => { const what = hit(e); if (what && what.bar) go(what.bar, true); });
svg.addEventListener("mousemove", e => {
  const what = !pointers.size && hit(e);
  if (what) showTip(e, what); else tip.hidden = true;
});
svg.addEventListener("mouseleave", () => { tip.hidden = true; });

svg.addEventListener("wheel", e => {
  const along = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY);
  const all = view.to - view.from >= (1 + 1.99 * margin) * whole;
  if (!along && e.deltaY > 0 && all) return; // nothing more to show: the page scrolls
  e.preventDefault();
  tip.hidden = true;
  const step = (along ? e.deltaX || e.deltaY : e.deltaY) * (e.deltaMode === 1 ? 16 : 1);
  if (along) move(step / view.width);
  else zoom(Math.exp(Math.min(Math.max(step, -200), 200) * 0.0022), inside(e));
}, { passive: false });

// neighbour is the bar beside the selected one in its row, or the nearest one in the rows above or below.
function neighbour(dx, dy) {
  const rows = lanes.flatMap(l => l.rows).map(row => row.filter(b => !hidden.has(spans.kind[b.span]))).filter(row => row.length);
  if (!selected) {
    for (const row of rows) { const i = firstAfter(row, view.from); if (i < row.length && row[i].start < view.to) return row[i]; }
    return rows.length ? rows[0][0] : null;
  }
  const n = rows.findIndex(row => row[0].lane === selected.lane && row[0].row === selected.row);
  if (dx) { const row = rows[n] || []; return row[row.findIndex(b => b.at === selected.at) + dx]; }
  const row = rows[n + dy], t = (selected.start + selected.end) / 2;
  return row && row[Math.min(firstAfter(row, t), row.length - 1)];
}

const keys = {
  ArrowLeft: () => go(neighbour(-1, 0)), ArrowRight: () => go(neighbour(1, 0)), ArrowUp: () => go(neighbour(0, -1)), ArrowDown: () => go(neighbour(0, 1)),
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), w: () => zoom(0.6), s: () => zoom(1 / 0.6),
  a: () => move(-0.2), d: () => move(0.2), PageUp: () => move(-0.9), PageDown: () => move(0.9), 0: showAll, Home: showAll,
  Enter: () => selected && showBar(selected, true), Escape: () => select(null),
};
svg.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
  e.preventDefault();
  keys[e.key]();
});
addEventListener("keydown", e => {
  if (e.key !== "/" || e.target === search) return;
  e.preventDefault();
  search.focus();
});

byId("in").addEventListener("click", () => zoom(0.5));
byId("out").addEventListener("click", () => zoom(2));
byId("fit").addEventListener("click", showAll);
byId("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

// lead shows what the page's address asks for: #show=FROM,TO, or select=OPERATION, with so much time around it: width=TIME. Times are in
// microseconds; an operation is a number, or the first of a name.
function lead() {
  const wanted = new URLSearchParams(location.hash.slice(1)), [from, to] = (wanted.get("show") || "").split(",").map(t => 1e3 * t);
  if (to > from) show(from, to);
  if (!wanted.has("select")) return;
  let i = spans.id.indexOf(+wanted.get("select"));
  if (i < 0) i = spans.name.findIndex(n => trace.texts[n] === wanted.get("select"));
  const bar = runs.get(i) || calls.get(i), width = 1e3 * wanted.get("width");
  if (!bar) return;
  if (width > 0) show((bar.start + bar.end - width) / 2, (bar.start + bar.end + width) / 2);
  else if (!(to > from)) showBar(bar);
  select(bar, true);
}
addEventListener("hashchange", lead);

layout();
let led = false;
new ResizeObserver(() => {
  view.width = Math.max(canvas.clientWidth, 1);
  drawOverview();
  redraw();
  if (!led) { led = true; lead(); }
}).observe(canvas);
