// Two models or settings beside each other: one prompt, one seed.
import { count, fill, h, paced, say, seconds } from "./dom.js";
import { turns } from "./markdown.js";
import { picker } from "./models.js";
import { body, collect, withSeed } from "./request.js";
import { panel } from "./settings.js";

const longest = 2000; // tokens that are compared

// common marks the tokens of both lists that are in their longest common
// sequence.
export function common(a, b) {
  const n = Math.min(a.length, longest), m = Math.min(b.length, longest);
  const rows = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) rows[i][j] = a[i] === b[j] ? rows[i + 1][j + 1] + 1 : Math.max(rows[i + 1][j], rows[i][j + 1]);
  }
  const inA = new Set(), inB = new Set();
  for (let i = 0, j = 0; i < n && j < m;) {
    if (a[i] === b[j]) { inA.add(i++); inB.add(j++); } else if (rows[i + 1][j] >= rows[i][j + 1]) i++;
    else j++;
  }
  return [inA, inB];
}

function column(title) {
  const settings = {};
  const model = picker(null, (v) => options.defaultsOf(v));
  const options = panel(settings, () => {});
  const text = h("div", { class: "tokens", dir: "auto" });
  const facts = h("div", { class: "facts", role: "status" });
  const note = h("p", { class: "bad", role: "alert" });
  return {
    settings, model, text, facts, note, node: null,
    element: h("section", { class: "column", "aria-label": title }, h("h2", {}, title), model, h("details", { class: "drawer" }, h("summary", {}, "Settings"), options), facts, note, text),
    draw(same) {
      const tokens = this.node.tokens;
      if (!tokens.length) return fill(text, turns(this.node.content));
      fill(text, tokens.map((t, i) => h("span", { class: same && !same.has(i) ? "differs" : "" }, turns(t.text))));
      note.textContent = this.node.meta?.error || "";
    },
    done() {
      const t = this.node.meta?.timings;
      fill(facts, t ? [h("span", {}, h("b", {}, seconds(t.first_token_ms / 1000)), " to the first token"), h("span", {}, h("b", {}, (t.predicted_per_second || 0).toFixed(1)), " tokens/s"), h("span", {}, h("b", {}, count(t.predicted_n)), " tokens")] : null);
    },
  };
}

export function view() {
  const pair = [column("A"), column("B")];
  const prompt = h("textarea", { rows: 3, placeholder: "One prompt for both", "aria-label": "Prompt" });
  const seed = h("input", { type: "number", min: 0, value: 1, "aria-label": "Seed" });
  const together = h("input", { type: "checkbox", id: "together" });
  const go = h("button", { class: "primary" }, "Compare");
  let stop = null;

  async function start() {
    if (stop) return stop.abort();
    if (!prompt.value.trim()) return;
    stop = new AbortController();
    go.textContent = "Stop";
    const one = async (c) => {
      c.node = { content: "", tokens: [] };
      c.done();
      const b = body(c.model.value, c.settings, [{ role: "user", content: prompt.value }]);
      await collect(c.node, withSeed({ seed: Number(seed.value) || 0, max_tokens: 512, ...b }), stop.signal, paced(100, () => c.draw(null)));
      c.done();
    };
    try {
      if (together.checked) await Promise.all(pair.map(one));
      else for (const c of pair) if (!stop.signal.aborted) await one(c); // in turns: neither slows the other
    } catch (e) { say(e.message, "error"); }
    const [a, b] = pair.map((c) => c.node?.tokens.map((t) => t.text) || []);
    const same = common(a, b);
    pair.forEach((c, i) => c.node && c.draw(same[i]));
    go.textContent = "Compare";
    stop = null;
  }

  return {
    element: h("section", { class: "page" }, h("h1", {}, "Side by side"),
      h("form", { class: "stack", onsubmit: (e) => { e.preventDefault(); start(); } }, prompt,
        h("div", { class: "row" }, h("label", {}, "Seed ", seed), together, h("label", { for: "together" }, "at the same time"), go)),
      h("div", { class: "columns" }, pair.map((c) => c.element))),
    close: () => stop?.abort(),
  };
}
