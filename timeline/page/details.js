// details.js: what is known of an operation: in a word beside the pointer, and in full for the selected one.
let selected = null; // a bar
const isSelected = bar => selected && selected.span === bar.span;
const tip = byId("tip"), details = byId("details"), said = byId("said");

function lasted(bar) {
  return bar.open ? "not ended when the trace was" : duration(bar.end - bar.start);
}

// facts are what is known of span i, as pairs.
function facts(i) {
  const list = [], put = (name, value) => { if (value) list.push([name, value]); };
  const started = spans.start[i] >= 0, ended = spans.end[i] >= 0, queued = spans.enqueued[i] >= 0;
  put("kind", kindOf(i));
  put("stream", streamOf(i));
  put("call", text("op", i));
  put("at", text("site", i));
  put("queued", queued && duration(spans.enqueued[i]));
  put("call took", queued && spans.returned[i] >= 0 && duration(spans.returned[i] - spans.enqueued[i]));
  put("began", started ? duration(spans.start[i]) : "not known");
  put("waited in the queue", started && queued && spans.start[i] > spans.enqueued[i] && duration(spans.start[i] - spans.enqueued[i]));
  put("took", started && (ended ? duration(spans.end[i] - spans.start[i]) : "not ended when the trace was"));
  put("moved", spans.bytes[i] && bytes(spans.bytes[i]));
  put("rate", rate(i) && `${+rate(i).toPrecision(3)} GB/s`);
  put("clock", started && (spans.device[i] ? "the device's" : "the host's"));
  put("failed", text("error", i));
  put("number", String(spans.id[i]));
  return list;
}

function select(bar, speak) {
  selected = bar;
  redraw();
  details.hidden = !bar;
  if (!bar) return;
  const i = bar.span, list = element("dl", {});
  for (const [name, value] of facts(i)) list.append(element("div", name === "failed" ? { class: "error" } : {}, element("dt", {}, name), element("dd", {}, value)));
  const mark = element("i", {});
  details.replaceChildren(element("div", { class: `title kind ${classOf(i)}` }, mark, nameOf(i)), list);
  links("waited for", "before", before(i));
  links("waited for it", "behind", behind.get(i) || []);
  links("belongs to", "queued", parentOf(i) === undefined ? [] : [parentOf(i)]);
  links("has in it", "queued", within.get(i) || []);
  if (speak) said.textContent = `${nameOf(i)}, ${kindOf(i)}, ${streamOf(i)}, from ${duration(bar.start)}, ${lasted(bar)}`;
}

// links lists spans that lead to each other, as buttons.
function links(title, look, list) {
  if (list.length === 0) return;
  const line = element("div", { class: "links" }, title);
  for (const i of list.slice(0, 12)) {
    const button = element("button", { type: "button", class: look }, `${nameOf(i)}${streamOf(i) ? " · " + streamOf(i) : ""}`);
    button.addEventListener("click", () => go(runs.get(i) || calls.get(i)));
    line.append(button);
  }
  if (list.length > 12) line.append(`and ${list.length - 12} more`);
  details.append(line);
}

// go selects bar and shows it.
function go(bar, near) {
  if (!bar) return;
  select(bar, true);
  showBar(bar, near);
}

function showTip(event, { bar, cluster }) {
  if (cluster) {
    const ran = cluster.reduce((sum, b) => sum + b.end - b.start, 0);
    tip.replaceChildren(element("b", {}, `${cluster.length} operations`), element("small", {}, `${duration(ran)} in all; zoom in to tell them apart`));
  } else {
    const i = bar.span, call = lanes[bar.lane].calls;
    tip.replaceChildren(element("b", {}, nameOf(i)), element("small", {}, [call ? `call of ${text("op", i) || kindOf(i)}` : kindOf(i), lasted(bar), rate(i) && !call ? `${+rate(i).toPrecision(3)} GB/s` : ""].filter(s => s).join(" · ")));
    if (!call && spans.enqueued[i] >= 0 && bar.start > spans.enqueued[i]) tip.append(element("small", {}, `queued ${duration(bar.start - spans.enqueued[i])} before`));
    if (before(i).length) tip.append(element("small", {}, `waited for ${before(i).map(nameOf).slice(0, 3).join(", ")}`));
    if (text("site", i)) tip.append(element("small", {}, text("site", i)));
    if (text("error", i)) tip.append(element("small", {}, text("error", i)));
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
}
