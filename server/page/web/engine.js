// Inside the engine: batch, pages, roofline.
import { batch } from "./batch.js";
import { count, fill, h, paced, seen, write } from "./dom.js";
import { kvmap } from "./kvmap.js";
import { watch } from "./live.js";
import { roofline } from "./roofline.js";

const every = 333; // milliseconds between two pictures: to draw takes from the engine

// facts are the numbers of a model: what they are called, and their value.
const facts = [["running", (m) => m.running], ["waiting", (m) => m.waiting], ["paused", (m) => m.paused], ["steps", (m) => m.steps], ["prompt tokens", (m) => m.prompt_tokens],
  ["cached tokens", (m) => m.cached_tokens], ["generated tokens", (m) => m.generated_tokens], ["preemptions", (m) => m.preemptions], ["pages free", (m) => Math.floor(m.kv.free / m.kv.page_tokens)]];

export function view() {
  const parts = [batch(), kvmap(), roofline()];
  const boxes = facts.map(([k]) => h("dd", {}, "–"));
  const numbers = h("dl", { class: "numbers" }, facts.map(([k], i) => h("div", { "data-number": k }, h("dt", {}, k), boxes[i])));
  const note = h("p", { class: "quiet", role: "status" }, "…");
  const lost = h("p", { class: "bad", role: "alert" });
  const model = h("select", { "aria-label": "Model", onchange: () => draw() });
  let state = null, names = "";

  const draw = paced(every, () => {
    write(lost, state?.lost ? state.lost + " Trying again …" : "");
    const models = state?.status?.models || [];
    const now = models.map((m) => m.name).join("\n");
    if (now !== names) {
      names = now;
      const was = model.value;
      fill(model, models.map((m) => h("option", { value: m.name }, m.name)));
      if (models.some((m) => m.name === was)) model.value = was;
    }
    const m = models.find((x) => x.name === model.value);
    model.hidden = numbers.hidden = !m;
    for (const p of parts) p.element.hidden = !m;
    write(note, m || !state ? "" : "No model is loaded: ask something first.");
    if (!m) return;
    facts.forEach(([, value], i) => write(boxes[i], count(value(m))));
    for (const p of parts) if (p.shown) p.draw(m, state.steps[m.name] || []);
  });
  const ends = parts.map((p) => seen(p.element, (yes) => { if (p.shown = yes) draw(); }));
  const stop = watch((s) => { state = s; draw(); });
  return {
    element: h("section", { class: "page" }, h("div", { class: "bar" }, h("h1", {}, "Engine"), model), lost, note, numbers, parts.map((p) => p.element)),
    close: () => { stop(); for (const f of [...ends, ...parts.map((p) => p.close)]) f?.(); },
  };
}
