// The roofline: operations a byte against operations a second, with the lines
// that this machine has and the dots where the engine is now (Williams et al.
// 2009).
import { call } from "./api.js";
import { saveSVG } from "./canvas.js";
import { fill, h, s, table, write } from "./dom.js";

const W = 640, H = 320, left = 60, right = 20, top = 16, bottom = 44;
const xs = [0.25, 4096]; // operations a byte

export function roofline() {
  const svg = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Roofline of this machine" });
  const limit = h("p", { role: "status" });
  const figures = h("tbody");
  let asked = 0, busy = false, steps = "", changed = 0, drawn = "";

  // refresh asks every two seconds, as long as the last ten may have changed.
  async function refresh(m) {
    const now = performance.now(), state = m.name + m.steps;
    if (state !== steps) changed = now;
    steps = state;
    if (busy || now - asked < 2000 || asked && now - changed > 14000) return;
    busy = true;
    asked = now;
    try {
      const text = await (await call("/ridge/roofline?model=" + encodeURIComponent(m.name))).text();
      if (text !== drawn) draw(JSON.parse(drawn = text));
    } catch (e) { write(limit, e.message); }
    busy = false;
  }

  function draw(r) {
    const m = r.machine, dots = Object.entries(r.dots).filter(([, d]) => d);
    const peak = Math.max(m.int8_gop_s || 0, m.f32_gflop_s || 0, 1, ...dots.map(([, d]) => d.gop_s));
    const ys = [Math.min(Math.max(0.1, m.read_gb_s * xs[0] / 4), ...dots.map(([, d]) => d.gop_s / 2)), peak * 2];
    const lx = (v) => left + (W - left - right) * Math.log(v / xs[0]) / Math.log(xs[1] / xs[0]);
    const ly = (v) => H - bottom - (H - top - bottom) * Math.log(Math.max(v, ys[0]) / ys[0]) / Math.log(ys[1] / ys[0]);
    const parts = [s("rect", { class: "area", x: left, y: top, width: W - left - right, height: H - top - bottom })];
    for (let v = xs[0]; v <= xs[1]; v *= 4) parts.push(s("line", { class: "grid", x1: lx(v), x2: lx(v), y1: top, y2: H - bottom }), s("text", { x: lx(v), y: H - bottom + 16, "text-anchor": "middle" }, v));
    for (let v = 10 ** Math.ceil(Math.log10(ys[0])); v <= ys[1]; v *= 10) parts.push(s("line", { class: "grid", x1: left, x2: W - right, y1: ly(v), y2: ly(v) }), s("text", { x: left - 6, y: ly(v) + 4, "text-anchor": "end" }, v >= 1 ? v.toFixed(0) : v.toFixed(1)));
    parts.push(s("text", { x: (left + W - right) / 2, y: H - 8, "text-anchor": "middle" }, "operations a byte"), s("text", { x: left + 6, y: top + 14 }, "Gop/s"));
    for (const [name, roof] of [["int8", m.int8_gop_s], ["f32", m.f32_gflop_s]]) {
      if (!roof || !m.read_gb_s) continue;
      const knee = roof / m.read_gb_s;
      parts.push(s("polyline", { class: "roof", points: [[xs[0], m.read_gb_s * xs[0]], [knee, roof], [xs[1], roof]].filter(([x]) => x <= xs[1]).map(([x, y]) => `${lx(x)},${ly(y)}`).join(" ") }),
        s("text", { x: W - right - 4, y: ly(roof) - 5, "text-anchor": "end" }, `${name}: ${roof.toFixed(0)} Gop/s`));
    }
    if (m.read_gb_s) parts.push(s("text", { x: lx(1) + 8, y: ly(m.read_gb_s) + 12 }, `${m.read_gb_s.toFixed(1)} GB/s`));
    const rows = [];
    for (const [name, d] of dots) {
      const x = Math.min(Math.max(d.ops_per_byte, xs[0]), xs[1]);
      parts.push(s("circle", { class: "dot " + name, cx: lx(x), cy: ly(d.gop_s), r: 6 }), s("text", { x: lx(x) + 9, y: ly(d.gop_s) + 4, class: "name" }, name));
      rows.push(h("tr", {}, h("td", {}, name), [d.ops_per_byte, d.gop_s, d.gb_s].map((v) => h("td", { class: "num" }, v.toFixed(v < 10 ? 2 : 0))), h("td", { class: "num" }, d.percent_of_limit ? d.percent_of_limit.toFixed(0) + "%" : "–")));
    }
    fill(svg, parts);
    fill(figures, rows);
    write(limit, r.limit);
  }

  return {
    element: h("section", { class: "card" }, h("div", { class: "bar" }, h("h2", {}, "Roofline"), saveSVG(svg, "roofline")), limit, svg,
      table(["hidden Part", "num Operations a byte", "num Gop/s", "num GB/s", "num Of the limit"], figures)),
    draw: refresh,
  };
}
