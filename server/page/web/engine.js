// Inside the engine: batch, pages, roofline.
import { batch } from "./batch.js";
import { count, fill, h, perFrame } from "./dom.js";
import { kvmap } from "./kvmap.js";
import { watch } from "./live.js";
import { roofline } from "./roofline.js";

export function view() {
  const parts = { batch: batch(), pages: kvmap(), roof: roofline() };
  const numbers = h("dl", { class: "numbers" });
  const lost = h("p", { class: "bad", role: "alert" });
  const model = h("select", { "aria-label": "Model", onchange: () => draw() });
  let state = null, names = "";

  const draw = perFrame(() => {
    lost.textContent = state?.lost ? state.lost + " Trying again …" : "";
    const models = state?.status?.models || [];
    const now = models.map((m) => m.name).join("\n");
    if (now !== names) {
      names = now;
      const was = model.value;
      fill(model, models.map((m) => h("option", { value: m.name }, m.name)));
      if (models.some((m) => m.name === was)) model.value = was;
    }
    const m = models.find((x) => x.name === model.value);
    if (!m) return fill(numbers, h("p", { class: "quiet" }, state ? "No model is loaded: ask something first." : "…"));
    fill(numbers, [["running", m.running], ["waiting", m.waiting], ["paused", m.paused], ["steps", m.steps], ["prompt tokens", m.prompt_tokens], ["cached tokens", m.cached_tokens],
      ["generated tokens", m.generated_tokens], ["preemptions", m.preemptions], ["pages free", Math.floor(m.kv.free / m.kv.page_tokens)]].map(([k, v]) => h("div", { "data-number": k }, h("dt", {}, k), h("dd", {}, count(v)))));
    parts.batch.draw(m, state.steps[m.name] || []);
    parts.pages.refresh(m.name);
    parts.roof.refresh(m.name);
  });
  const stop = watch((s) => { state = s; draw(); });
  return { element: h("section", { class: "page" }, h("div", { class: "bar" }, h("h1", {}, "Engine"), model), lost, numbers, parts.batch.element, parts.pages.element, parts.roof.element), close: stop };
}
