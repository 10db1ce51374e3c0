// What models there are: for pickers, and the view that loads and pulls them.
import { adapters } from "./adapters.js";
import { call, get, jsonLines, post } from "./api.js";
import { bytes, count, fill, h, say, table, wide } from "./dom.js";

let known = []; // as the server listed them last
let inside = { models: [] };

// served returns the models that the server answers for, with their size and
// whether they fit, where the server says so.
export async function served() {
  const [list, more] = await Promise.all([get("/v1/models"), get("/ridge/models").catch(() => ({ models: [] }))]);
  inside = more;
  const of = new Map(inside.models.flatMap((m) => (m.names || [m.name]).map((n) => [n, m])));
  known = list.data.map((m) => ({ ...m, inside: of.get(m.id) }));
  return known;
}

// label says of a model what matters when it is chosen.
function label(m) {
  if (m.parent) return `${m.id} (adapter of ${m.parent})`;
  const i = m.inside || {};
  const size = i.bytes || i.needs_bytes; // what is in the program has no file
  const facts = [size ? bytes(size) : "", i.reason ? "cannot run" : i.fits === false ? "does not fit" : m.loaded ? "" : "not loaded"].filter(Boolean);
  return m.id + (facts.length ? ` (${facts.join(", ")})` : "");
}

// limit returns the context length of a model, undefined if nobody knows.
export function limit(name) {
  const m = known.find((x) => x.id === name);
  return m?.max_model_len ?? (m?.parent && m.parent !== name ? limit(m.parent) : m?.inside?.context || undefined);
}

// better is the model to pull where nothing is here but tiny, which is in the program
// to try things with; undefined elsewhere.
export const better = () => inside.clients_pull && inside.models.every((m) => m.catalogue || m.reads_only || m.name === "tiny") ? inside.models.find((m) => m.default) : undefined;

// picker is a list of models to choose from: of those that write, or of all. It asks for
// them when it is opened.
export function picker(value, chosen, all = false) {
  const e = h("select", { "aria-label": "Model", onchange: () => chosen(value = e.value) });
  const show = (models) => {
    const here = models.filter((m) => all || !m.inside?.reads_only);
    if (models.some((m) => m.id === value) && !here.some((m) => m.id === value)) value = "";
    // A model is listed once, by the name that it has itself, unless another one is in use.
    const list = here.filter((m) => m.id === value || m.parent || !here.some((o) => o.id === m.root && o.id !== m.id));
    fill(e, list.map((m) => h("option", { value: m.id }, label(m))));
    if (value && !list.some((m) => m.id === value)) e.append(h("option", { value }, value + " (gone)"));
    e.value = value || list[0]?.id || "";
    chosen(value = e.value);
  };
  const refresh = () => served().then(show, (err) => say(err.message, "error"));
  refresh();
  return Object.assign(e, { refresh, choose: (v) => { value = v; return refresh(); } });
}

// defaults returns what the model does where a request says nothing.
export async function defaults(name) {
  const p = await get("/props?model=" + encodeURIComponent(name));
  return p.default_generation_settings?.params || {};
}

// download pulls a model and shows how far it is, until it is here or cancel is
// pressed. It resolves to whether it is here.
export async function download(what, { status, bar, cancel }) {
  const stop = new AbortController();
  cancel.hidden = bar.hidden = false;
  bar.removeAttribute("value");
  status.textContent = `Asking for ${what} …`;
  cancel.onclick = () => stop.abort();
  let done = false;
  const began = performance.now();
  try {
    for await (const p of jsonLines(await call("/api/pull", { body: { model: what, stream: true }, signal: stop.signal }))) {
      if (p.error) throw new Error(p.error);
      const got = p.completed || 0, rate = got / (performance.now() - began);
      const left = p.total > got && rate > 0 && performance.now() - began > 3000 ? `, about ${count(Math.ceil((p.total - got) / rate / 1000))} s left` : "";
      status.textContent = p.total ? `${p.status}: ${bytes(got)} of ${bytes(p.total)}${left}` : p.status;
      if (p.total) bar.value = got / p.total;
    }
    status.textContent = `${what} is here.`;
    done = true;
  } catch (e) {
    status.textContent = e.name === "AbortError" ? `The download of ${what} was cancelled.` : e.message;
  }
  cancel.hidden = bar.hidden = true;
  return done;
}

// pullParts are what download shows itself in.
export const pullParts = () => ({
  status: h("p", { class: "quiet", role: "status" }), bar: h("progress", { max: 1, hidden: true, "aria-label": "Download" }), cancel: h("button", { type: "button", hidden: true }, "Cancel"),
});

// view lists the models, loads, unloads and pulls.
export function view() {
  const body = h("tbody");
  const parts = pullParts();
  const name = h("input", { placeholder: "qwen2.5-coder:0.5b, or hf.co/org/repo:Q4_K_M", "aria-label": "Name of a model to pull", required: true });
  const form = h("form", { class: "row", hidden: true, onsubmit: (e) => { e.preventDefault(); pull(name.value.trim()); } }, name, h("button", { class: "primary" }, "Pull"), parts.cancel);
  const free = h("p", { class: "quiet" });
  const lora = adapters();
  let pulling = false;

  const action = (label, path, model) => h("button", {
    type: "button", onclick: async (e) => {
      e.target.disabled = true;
      if (label === "Load") e.target.textContent = "Loading …";
      await post(path, { model }).catch((err) => say(err.message, "error"));
      refresh();
    },
  }, label);

  function row(m) {
    const state = m.loaded ? "loaded" : m.reason ? "cannot run" : m.fits === false ? "does not fit" : m.catalogue ? "to pull" : "here";
    return h("tr", { "data-model": m.name },
      h("td", {}, h("b", {}, m.name), h("div", { class: "quiet" }, [m.arch, m.quant, m.parameters ? count(m.parameters) + " parameters" : "", m.licence].filter(Boolean).join(" · ")),
        m.source && m.source !== m.name ? h("div", { class: "quiet source" }, (m.catalogue ? "from " : "") + m.source) : null),
      h("td", { class: "num" }, m.bytes ? bytes(m.bytes) : "–"),
      h("td", { class: "num" }, m.needs_bytes ? bytes(m.needs_bytes) : "–"),
      h("td", {}, h("span", { class: "badge " + state.replaceAll(" ", "-") }, state), m.reason ? h("div", { class: "quiet" }, m.reason) : null),
      h("td", {}, m.loaded ? m.fixed ? null : action("Unload", "/ridge/unload", m.name) : m.catalogue ? h("button", { type: "button", onclick: () => pull(m.name) }, "Pull")
        : m.reason ? null : action("Load", "/ridge/load", m.name)));
  }

  async function refresh() {
    let all;
    try {
      all = await get("/ridge/models");
    } catch (e) { return say(e.message, "error"); }
    fill(body, all.models.map(row));
    form.hidden = !all.clients_pull;
    const left = all.models.find((m) => m.free_bytes)?.free_bytes;
    fill(free, (left ? bytes(left) + " of memory are free. " : "") + (all.clients_pull ? "" : "To load others and to pull more from here, start the server with --pull."));
    lora.refresh(all.models.filter((m) => m.loaded).map((m) => m.name));
  }

  async function pull(what) {
    if (pulling) return;
    pulling = true;
    await download(what, parts);
    pulling = false;
    refresh();
  }

  refresh();
  return {
    element: h("section", { class: "page" }, h("h1", {}, "Models"), form, parts.bar, parts.status, free,
      wide("Models", table(["Model", "num Size", "num Takes", "State", "hidden Action"], body)), lora.element),
    close: () => { if (pulling) parts.cancel.click(); },
  };
}
