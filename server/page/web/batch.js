// The live batch: a row for each sequence, a column for each of the last steps.
import { color, saveCanvas, sized } from "./canvas.js";
import { count, h, seconds, write } from "./dom.js";

const columns = 120, rowHeight = 14, names = 150, plot = 60;

export function batch() {
  const canvas = h("canvas", { role: "img", tabIndex: 0, "aria-label": "Steps of the engine, by sequence" });
  const tip = h("p", { class: "quiet tip", role: "status" });
  let rows = [], steps = [], shown = { width: 0 };

  // lines decides which sequences have a row: those in the steps and those that
  // wait, in the order in which they came.
  function lines(model) {
    const seen = new Map();
    for (const st of steps) for (const r of st.rows) seen.set(r.id + "/" + r.choice, { id: r.id, choice: r.choice, context: r.context });
    for (const q of model.sequences) {
      const k = q.id + "/" + q.choice;
      seen.set(k, { ...seen.get(k), ...q });
    }
    return [...seen].map(([key, v]) => ({ key, ...v })).slice(-40);
  }

  function draw(model, last) {
    steps = last;
    rows = lines(model);
    const { c, width, height } = sized(canvas, plot + 10 + Math.max(1, rows.length) * rowHeight + 4);
    const left = width < 500 ? 70 : names, w = (width - left) / columns;
    shown = { width, left, w };
    const colors = { prefill: color("prefill"), decode: color("decode"), draft: color("draft") };
    const ink = color("ink"), quiet = color("quiet");
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    // Time of a step, and its prediction as a line.
    const most = Math.max(1e-6, ...steps.flatMap((s) => [s.took, s.predicted || 0]));
    const x0 = (i) => left + (columns - steps.length + i) * w;
    c.fillStyle = color("bar");
    steps.forEach((s, i) => c.fillRect(x0(i), plot - plot * s.took / most, Math.max(1, w - 1), plot * s.took / most));
    c.strokeStyle = color("warn");
    c.lineWidth = 1.5;
    c.beginPath();
    steps.forEach((s, i) => s.predicted && c.lineTo(x0(i) + w / 2, plot - plot * s.predicted / most));
    c.stroke();
    c.fillStyle = quiet;
    c.fillText(seconds(most), 4, 8);
    c.fillText("step time,", 4, 24);
    c.fillText("line: predicted", 4, 38);
    // Sequences.
    const at = new Map(rows.map((r, i) => [r.key, i]));
    const y0 = (i) => plot + 10 + i * rowHeight;
    steps.forEach((s, i) => {
      for (const r of s.rows) {
        const line = at.get(r.id + "/" + r.choice);
        if (line == null) continue;
        c.fillStyle = colors[r.kind] || ink;
        c.fillRect(x0(i), y0(line) + 1, Math.max(1, w - 0.5), rowHeight - 3);
      }
      for (const id of s.preempted || []) {
        const line = at.get(id + "/0");
        if (line == null) continue;
        c.fillStyle = color("bad");
        c.fillRect(x0(i), y0(line) + 1, Math.max(2, w), rowHeight - 3);
      }
    });
    rows.forEach((r, i) => {
      c.fillStyle = ink;
      const label = `${(r.tenant ? r.tenant + " " : "")}${r.id.slice(-6)} ${r.state && r.state !== "running" ? r.state : count((r.prompt_tokens || 0) + (r.generated_tokens || 0) || r.context)}`;
      c.fillText(label, 4, y0(i) + rowHeight / 2, left - 8);
      const wait = { waiting: "waiting", paused: "paused", swapped: "bad" }[r.state];
      if (wait) {
        c.fillStyle = color(wait);
        c.fillRect(width - Math.max(3, w), y0(i) + 1, Math.max(3, w), rowHeight - 3);
      }
    });
    const lastStep = steps.at(-1);
    if (lastStep && !canvas.matches(":hover, :focus-visible")) {
      const tokens = lastStep.rows.reduce((n, r) => n + r.tokens, 0);
      write(tip, `Step ${count(lastStep.n)}: ${seconds(lastStep.took)}, predicted ${seconds(lastStep.predicted)}; ${count(tokens)} of a budget of ${count(lastStep.budget)} tokens; ${lastStep.waiting} wait, ${lastStep.paused} are paused.`);
    } else if (!lastStep) write(tip, "No step was done yet: ask something.");
  }

  const rowAt = (y) => Math.floor((y - plot - 10) / rowHeight);
  canvas.onmousemove = (e) => tell(Math.floor((e.offsetX - shown.left) / shown.w) - (columns - steps.length), rowAt(e.offsetY));
  let at = { n: Infinity, row: 0 }; // the step and the row that the arrow keys are at
  canvas.onkeydown = (e) => {
    const [by, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key] || [];
    if (by == null || !steps.length) return;
    e.preventDefault();
    const first = steps[0].n, i = Math.max(0, Math.min(steps.length - 1, Math.min(at.n - first, steps.length - 1) + by));
    at = { n: first + i, row: Math.max(0, Math.min(rows.length - 1, at.row + down)) };
    tell(i, at.row);
  };
  function tell(i, row) {
    const st = steps[i];
    if (!st) return;
    const r = rows[row], mine = r && st.rows.find((x) => x.id + "/" + x.choice === r.key);
    tip.textContent = `Step ${count(st.n)}: ${seconds(st.took)}, predicted ${seconds(st.predicted)}` + (mine ? `; ${r.id}: ${mine.kind}, ${mine.tokens} tokens at ${count(mine.context)}` : `; ${st.rows.length} rows`);
  }
  const key = ["prefill", "decode", "draft", "waiting", "paused"].map((k) => h("span", { class: "key" }, h("i", { class: "swatch " + k }), k));
  return { element: h("section", { class: "card" }, h("div", { class: "bar" }, h("h2", {}, "Batch"), key, h("span", { class: "key" }, h("i", { class: "swatch preempted" }), "preempted"), saveCanvas(canvas, "batch")), canvas, tip), draw };
}
