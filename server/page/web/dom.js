// Building elements, and small things that every view needs.

// h makes an element. Properties that begin with "on" are listeners; a class,
// data-… and aria-… are attributes; null and false leave a property out.
export function h(tag, props, ...children) {
  const e = document.createElement(tag);
  set(e, props);
  put(e, children);
  return e;
}

// s is h for elements of SVG.
export function s(tag, props, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(props || {})) if (v != null && v !== false) e.setAttribute(k, v);
  put(e, children);
  return e;
}

function set(e, props) {
  for (const [k, v] of Object.entries(props || {})) {
    if (v == null || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k in e && !k.includes("-") && k !== "list" && k !== "form") e[k] = v;
    else e.setAttribute(k === "class" ? "class" : k, v === true ? "" : v);
  }
}

function put(e, children) {
  for (const c of children.flat(3)) if (c != null && c !== false && c !== "") e.append(c instanceof Node ? c : String(c));
}

// wide is a box for what may be wider than the screen.
export const wide = (label, ...children) => h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": label }, children);

// table is a table with the rows of body. A column is what it is called; "num "
// before the name is one of numbers, "hidden " one whose name only readers hear.
export const table = (columns, body) => h("table", {}, h("thead", {}, h("tr", {}, columns.map((c) => {
  const [, kind, name] = /^(num |hidden )?(.*)$/.exec(c);
  return h("th", { scope: "col", class: kind === "num " ? "num" : "" }, kind === "hidden " ? h("span", { class: "offscreen" }, name) : name);
}))), body);

// fill replaces the children of e.
export function fill(e, ...children) {
  e.replaceChildren();
  put(e, children);
  return e;
}

// later returns a function that calls f once, some time after its last call.
export function later(ms, f) {
  let timer;
  return (...args) => { clearTimeout(timer); timer = setTimeout(() => f(...args), ms); };
}

// soon is later, but f is called after at most so many milliseconds even if the
// calls do not end.
export function soon(ms, most, f) {
  let timer, since = null;
  return () => {
    since ??= performance.now();
    clearTimeout(timer);
    timer = setTimeout(() => { since = null; f(); }, Math.min(ms, Math.max(0, since + most - performance.now())));
  };
}

// paced returns a function that calls f before a frame, with so many milliseconds
// between two calls at least. Where nobody sees the page there are no frames.
export function paced(ms, f) {
  let asked = false, last = -ms;
  const frame = () => requestAnimationFrame((now) => { asked = false; last = now; f(); });
  return () => {
    if (asked) return;
    asked = true;
    const wait = last + ms - performance.now();
    if (wait > 0) setTimeout(frame, wait);
    else frame();
  };
}

// seen calls shown(true) when an element comes into sight, and shown(false) when it
// goes. It returns what ends that.
export function seen(element, shown) {
  const o = new IntersectionObserver((all) => shown(all.at(-1).isIntersecting), { rootMargin: "100px" });
  o.observe(element);
  return () => o.disconnect();
}

// write sets the text of an element if it is another one: to set it costs layout.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// say tells something at the edge of the page, and to screen readers.
export function say(text, kind = "note") {
  let box = document.querySelector(".toasts");
  if (!box) document.body.append(box = h("div", { class: "toasts", role: "status", "aria-live": "polite" }));
  const t = h("div", { class: "toast " + kind }, text, h("button", { class: "plain", "aria-label": "Dismiss", onclick: () => t.remove() }, "×"));
  box.append(t);
  if (kind !== "error") setTimeout(() => t.remove(), 5000);
}

// copy puts text on the clipboard.
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages that came over plain HTTP from another machine have no clipboard.
    const area = h("textarea", { value: text, class: "offscreen" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  if (!button) return;
  const was = button.textContent;
  button.textContent = "copied";
  setTimeout(() => { button.textContent = was; }, 1200);
}

// save lets the browser save a file.
export function save(name, blob) {
  const a = h("a", { href: URL.createObjectURL(blob), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

// ask shows a dialog with content, and resolves to what close was called with.
export function ask(title, content, buttons) {
  return new Promise((resolve) => {
    const end = (v) => { d.close(); d.remove(); resolve(v); };
    const d = h("dialog", { "aria-label": title, oncancel: () => end(undefined) },
      h("form", { method: "dialog", onsubmit: (e) => { e.preventDefault(); end(buttons[0].value?.() ?? true); } },
        h("h2", {}, title), content,
        h("div", { class: "row end" },
          h("button", { type: "button", onclick: () => end(undefined) }, "Cancel"),
          buttons.map((b, i) => h("button", { type: i ? "button" : "submit", class: i ? "" : "primary", onclick: i ? () => end(b.value()) : null }, b.label)))));
    document.body.append(d);
    d.showModal();
  });
}

// Numbers as people read them.
export const bytes = (n) => n >= 1e9 ? (n / 1e9).toFixed(n < 1e10 ? 2 : 1) + " GB" : n >= 1e6 ? (n / 1e6).toFixed(n < 1e7 ? 1 : 0) + " MB" : n >= 1e3 ? (n / 1e3).toFixed(0) + " kB" : n + " B";
export const count = (n) => n == null ? "–" : Number(n).toLocaleString("en-US");
export const seconds = (x) => x == null ? "–" : x < 0.0995 ? (1000 * x).toFixed(x < 0.00995 ? 1 : 0) + " ms" : x < 120 ? x.toFixed(x < 9.95 ? 2 : 1) + " s" : Math.round(x / 60) + " min";
