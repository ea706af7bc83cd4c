// overview.js: the whole trace in one strip, and the window that shows which part is in view.
let overWindow = null;
function drawOverview() {
  const width = overview.clientWidth || 1, rows = lanes.filter(l => !l.calls).flatMap(l => l.rows);
  const gap = Math.min(6, 34 / Math.max(rows.length, 1)), part = document.createDocumentFragment();
  const at = t => (t + margin * whole) / ((1 + 2 * margin) * whole) * width;
  rows.forEach((row, n) => {
    const y = 6 + gap * (n + 0.5), paths = new Map();
    let right = -1;
    for (const bar of row) {
      const left = Math.max(at(bar.start), right), end = Math.max(at(bar.end), left + 0.5);
      if (at(bar.end) <= right) continue;
      right = end;
      const look = classOf(bar.span);
      paths.set(look, (paths.get(look) || "") + `M${left.toFixed(1)} ${y.toFixed(1)}H${end.toFixed(1)}`);
    }
    for (const [look, d] of paths) shape("path", { class: look, d }, part).style.strokeWidth = Math.max(gap - 1, 1);
  });
  overWindow = shape("rect", { class: "window", y: 0.5, height: 43 }, part);
  overview.replaceChildren(part);
}

function drawWindow() {
  if (!overWindow) return;
  const width = overview.clientWidth, all = (1 + 2 * margin) * whole;
  const left = (view.from + margin * whole) / all * width;
  overWindow.setAttribute("x", left + 0.5);
  overWindow.setAttribute("width", Math.max((view.to - view.from) / all * width - 1, 3));
}

// The window follows the pointer, wherever it was taken.
function followOverview(event) {
  const box = overview.getBoundingClientRect(), all = (1 + 2 * margin) * whole, width = view.to - view.from;
  const t = (event.clientX - box.left) / box.width * all - margin * whole;
  show(t - width / 2, t + width / 2);
}
overview.addEventListener("pointerdown", e => { overview.setPointerCapture(e.pointerId); followOverview(e); });
overview.addEventListener("pointermove", e => { if (e.buttons) followOverview(e); });
