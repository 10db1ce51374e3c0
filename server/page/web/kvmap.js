// The map of keys and values: a square for each page, and the tree of prefixes.
import { get } from "./api.js";
import { color, saveCanvas, sized } from "./canvas.js";
import { count, fill, h, seconds, table, wide, write } from "./dom.js";

const states = { f: "free", u: "used", s: "shared", c: "cached", p: "pinned", r: "state" };
const hues = 12; // of sequences

let known = {}; // the palette that was made last

// palette gives the colours of the style sheet as pixels. Reading a pixel back is
// slow, so it is made anew only when the theme changes.
function palette() {
  const theme = color("ink") + color("page-free");
  if (known.theme === theme) return known;
  const c = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const pixel = (css) => {
    c.fillStyle = css;
    c.fillRect(0, 0, 1, 1);
    return new Uint32Array(c.getImageData(0, 0, 1, 1).data.buffer)[0];
  };
  const of = Object.entries({ f: "page-free", u: "page-used", s: "page-shared", c: "page-cached", p: "page-pinned", r: "page-used", ink: "ink" }).map(([k, name]) => [k, pixel(color(name))]);
  return known = { theme, ...Object.fromEntries(of), sequences: Array.from({ length: hues }, (_, i) => pixel(`hsl(${i * 360 / hues} 55% 50%)`)) };
}

export function kvmap() {
  const canvas = h("canvas", { role: "img", tabIndex: 0, "aria-label": "Pages of keys and values" });
  const tip = h("p", { class: "quiet tip", role: "status" });
  const tree = h("tbody");
  let map = null, side = 10, across = 1, asked = 0, busy = false, drawn = "";

  // refresh asks for the map of a model, at most once a second, and not before
  // something can have changed.
  async function refresh(m) {
    const now = performance.now(), state = [m.name, m.steps, m.running, m.kv.pages, m.kv.cached, m.kv.free].join();
    if (busy || now - asked < (state === drawn ? 15000 : 1000)) return;
    busy = true;
    asked = now;
    try {
      map = await get("/ridge/kv?model=" + encodeURIComponent(m.name));
      drawn = state;
      draw();
      if (prefixes.open) branches();
    } catch (e) {
      write(tip, e.message);
    }
    busy = false;
  }

  // draw writes the pixels itself: ten thousand squares are no burden.
  function draw() {
    const n = map.state.length;
    const width = canvas.clientWidth || 600;
    side = Math.max(3, Math.min(14, Math.floor(Math.sqrt(width * 360 / Math.max(n, 1)))));
    across = Math.max(1, Math.floor(width / side));
    const { c } = sized(canvas, Math.ceil(n / across) * side + 1);
    const image = c.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    const scale = canvas.width / width, gap = side > 5 ? 1 : 0;
    const square = (x, y, size, value) => {
      const x0 = Math.round(x * scale), x1 = Math.round((x + size) * scale), y1 = Math.round((y + size) * scale);
      for (let row = Math.round(y * scale); row < y1; row++) pixels.fill(value, row * canvas.width + x0, row * canvas.width + x1);
    };
    const paint = palette();
    for (let i = 0; i < n; i++) {
      const st = map.state[i], x = (i % across) * side, y = Math.floor(i / across) * side;
      const own = (st === "u" || st === "s" || st === "r") && map.owner[i] >= 0;
      square(x, y, side - gap, own ? paint.sequences[map.owner[i] % hues] : paint[st] ?? paint.f);
      if (st === "s") square(x, y, Math.max(1, side / 3), paint.ink); // shared: a corner is marked
    }
    c.putImageData(image, 0, 0);
    const counts = {};
    for (const ch of map.state) counts[ch] = (counts[ch] || 0) + 1;
    if (canvas.matches(":hover, :focus-visible")) hover?.();
    else write(tip, `${count(n)} pages of ${map.page_tokens} tokens: ` + Object.entries(states).filter(([k]) => counts[k]).map(([k, v]) => `${count(counts[k])} ${v}`).join(", ") + (map.swapped ? `; ${count(map.swapped)} sequences are swapped out` : "") + ".");
  }

  function branches() {
    const depth = new Map();
    for (const t of map.tree) depth.set(t.node, (depth.get(t.parent) ?? -1) + 1);
    fill(tree, map.tree.slice(0, 100).map((t) => h("tr", {},
      h("td", {}, h("span", { class: "depth", "data-depth": Math.min(8, depth.get(t.node)) }, "└ ".repeat(Math.min(8, depth.get(t.node))) + (t.text || `tokens ${count(t.start)} to ${count(t.start + t.tokens)}`))),
      h("td", { class: "num" }, count(t.tokens)), h("td", { class: "num" }, count(t.users)), h("td", { class: "num" }, count(t.hits)), h("td", { class: "num" }, count(t.saved_tokens)),
      h("td", {}, t.pinned ? "pinned" : ""), h("td", { class: "num" }, seconds(t.age)))));
  }

  const resized = new ResizeObserver(() => map && draw());
  resized.observe(canvas);
  let hover = null; // tells of the page below the pointer
  canvas.onmousemove = (e) => {
    const column = Math.floor(e.offsetX / side), row = Math.floor(e.offsetY / side);
    (hover = () => column < across && tell(row * across + column))();
  };
  let at = 0; // the page that the arrow keys are at
  canvas.onkeydown = (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[e.key];
    if (!by || !map) return;
    e.preventDefault();
    at = Math.max(0, Math.min(map.state.length - 1, at + by));
    (hover = () => tell(at))();
  };
  function tell(i) {
    if (!map || !(i < map.state.length)) return;
    const q = map.sequences[map.owner[i]];
    write(tip, `Page ${count(i)}: ${states[map.state[i]] || map.state[i]}, ${map.tokens[i]} of ${map.page_tokens} tokens` + (q ? `, of ${q.id}${q.tenant ? " (" + q.tenant + ")" : ""}` : "") +
      (map.owners[i] > 1 ? `, ${map.owners[i]} owners` : "") + (map.state[i] === "f" ? "" : `, last used ${age(map.age[i])} ago`) + ".");
  }
  const age = (whole) => whole < 1 ? "less than a second" : seconds(whole + (performance.now() - asked) / 1000).replace(/\.\d+/, "");
  const prefixes = h("details", { ontoggle: () => prefixes.open && map && branches() }, h("summary", {}, "Prefixes"), wide("Prefixes", table(["Prefix", "num Tokens", "num Users", "num Hits", "num Tokens saved", "hidden Pinned", "num Age"], tree)));
  const key = [["page-free", "free"], ["page-used", "used, by sequence"], ["page-cached", "cached"], ["page-pinned", "pinned"]].map(([k, v]) => h("span", { class: "key" }, h("i", { class: "swatch " + k }), v));
  return {
    element: h("section", { class: "card" }, h("div", { class: "bar" }, h("h2", {}, "Keys and values"), key, h("span", { class: "key" }, "marked corner: shared"), saveCanvas(canvas, "pages")), canvas, tip, prefixes),
    draw: refresh,
    close: () => resized.disconnect(),
  };
}
