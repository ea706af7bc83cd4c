// search.js: what is looked for stays bright, all else is dimmed.
const search = byId("search"), hits = byId("hits");
let matched = null; // for each span; null: nothing is looked for
let found = []; // bars of what matches, by time
const matches = i => !matched || matched[i];

function lookFor(words) {
  words = words.trim().toLowerCase();
  matched = null;
  found = [];
  if (words) {
    const texts = trace.texts.map(s => s.toLowerCase().includes(words)), kinds = trace.kinds.map(s => s.includes(words));
    matched = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      if (!(texts[spans.name[i]] || texts[spans.op[i]] || texts[spans.site[i]] || texts[spans.error[i]] || kinds[2 * spans.kind[i]])) continue;
      matched[i] = 1;
      const bar = runs.get(i) || calls.get(i);
      if (bar) found.push(bar);
    }
    found.sort((a, b) => a.start - b.start);
  }
  hits.textContent = matched ? `${matched.reduce((sum, m) => sum + m, 0)} of ${count}` : "";
  redraw();
}

// nextFound goes to the next match after the selected bar, or the one before it.
function nextFound(forward) {
  if (!found.length) return;
  let at = selected ? found.findIndex(b => b.span === selected.span) : -1;
  if (at < 0 && selected) at = found.findIndex(b => b.start > selected.start) - (forward ? 1 : 0);
  at = at < -1 ? -1 : at;
  go(found[(at + (forward ? 1 : -1) + found.length) % found.length]);
}

search.addEventListener("input", () => lookFor(search.value));
search.addEventListener("keydown", e => {
  if (e.key === "Enter") nextFound(!e.shiftKey);
  if (e.key === "Escape") { search.value = ""; lookFor(""); svg.focus(); }
});
for (const button of document.querySelectorAll(".find")) button.addEventListener("click", () => {
  search.value = button.dataset.find;
  lookFor(search.value);
  byId("timeline").scrollIntoView({ block: "start" });
});
for (const button of document.querySelectorAll(".legend .kind")) button.addEventListener("click", () => {
  const kind = +button.dataset.kind, hide = !hidden.has(kind);
  hide ? hidden.add(kind) : hidden.delete(kind);
  button.setAttribute("aria-pressed", String(!hide));
  redraw();
});
