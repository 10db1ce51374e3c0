// What models there are: for pickers, and the view that loads and pulls them.
import { call, get, jsonLines, post } from "./api.js";
import { bytes, count, fill, h, say, table, wide } from "./dom.js";

let known = []; // as the server listed them last

// served returns the models that the server answers for, with their size and
// whether they fit, where the server says so.
export async function served() {
  const [list, inside] = await Promise.all([get("/v1/models"), get("/ridge/models").catch(() => ({ models: [] }))]);
  const more = new Map(inside.models.flatMap((m) => (m.names || [m.name]).map((n) => [n, m])));
  known = list.data.map((m) => ({ ...m, inside: more.get(m.id) }));
  return known;
}

// label says of a model what matters when it is chosen.
function label(m) {
  const i = m.inside || {};
  const size = i.bytes || i.needs_bytes; // what is in the program has no file
  const facts = [size ? bytes(size) : "", i.reason ? "cannot run" : i.fits === false ? "does not fit" : m.loaded ? "" : "not loaded"].filter(Boolean);
  return m.id + (facts.length ? ` (${facts.join(", ")})` : "");
}

// limit returns the context length of a model, undefined if nobody knows.
export const limit = (name) => known.find((m) => m.id === name)?.max_model_len;

// picker is a list of models to choose from. It asks for them when it is opened.
export function picker(value, chosen) {
  const e = h("select", { "aria-label": "Model", onchange: () => chosen(e.value) });
  const show = (list) => {
    fill(e, list.map((m) => h("option", { value: m.id }, label(m))));
    if (value && !list.some((m) => m.id === value)) e.append(h("option", { value }, value + " (gone)"));
    e.value = value || list[0]?.id || "";
    if (e.value !== value) chosen(value = e.value);
  };
  const refresh = () => served().then(show, (err) => say(err.message, "error"));
  refresh();
  return Object.assign(e, { refresh, choose: (v) => { value = v; refresh(); } });
}

// defaults returns what the model does where a request says nothing.
export async function defaults(name) {
  const p = await get("/props?model=" + encodeURIComponent(name));
  return p.default_generation_settings?.params || {};
}

// view lists the models, loads, unloads and pulls.
export function view() {
  const body = h("tbody");
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Download" });
  const status = h("p", { class: "quiet", role: "status" });
  const name = h("input", { placeholder: "qwen2.5-coder:0.5b, or hf.co/org/repo:Q4_K_M", "aria-label": "Name of a model to pull", required: true });
  const cancel = h("button", { type: "button", hidden: true }, "Cancel");
  let pulling = null;

  const action = (label, path, model) => h("button", {
    type: "button", onclick: async (e) => {
      e.target.disabled = true;
      await post(path, { model }).catch((err) => say(err.message, "error"));
      refresh();
    },
  }, label);

  function row(m) {
    const state = m.loaded ? "loaded" : m.reason ? "cannot run" : m.fits === false ? "does not fit" : m.catalogue ? "to pull" : "here";
    return h("tr", { "data-model": m.name },
      h("td", {}, h("b", {}, m.name), h("div", { class: "quiet" }, [m.arch, m.quant, m.parameters ? count(m.parameters) + " parameters" : "", m.licence].filter(Boolean).join(" · "))),
      h("td", { class: "num" }, m.bytes ? bytes(m.bytes) : "–"),
      h("td", { class: "num" }, m.needs_bytes ? bytes(m.needs_bytes) : "–"),
      h("td", {}, h("span", { class: "badge " + state.replaceAll(" ", "-") }, state), m.reason ? h("div", { class: "quiet" }, m.reason) : null),
      h("td", {}, m.loaded ? m.fixed ? null : action("Unload", "/ridge/unload", m.name) : m.catalogue ? h("button", { type: "button", onclick: () => pull(m.name) }, "Pull")
        : m.reason ? null : action("Load", "/ridge/load", m.name)));
  }

  async function refresh() {
    let list;
    try {
      list = (await get("/ridge/models")).models;
    } catch (e) { return say(e.message, "error"); }
    fill(body, list.map(row));
    const free = list.find((m) => m.free_bytes)?.free_bytes;
    if (free && !pulling) status.textContent = bytes(free) + " of memory are free.";
  }

  async function pull(what) {
    if (pulling) return;
    pulling = new AbortController();
    cancel.hidden = bar.hidden = false;
    cancel.onclick = () => pulling.abort();
    try {
      for await (const p of jsonLines(await call("/api/pull", { body: { model: what, stream: true }, signal: pulling.signal }))) {
        if (p.error) throw new Error(p.error);
        status.textContent = p.total ? `${p.status}: ${bytes(p.completed || 0)} of ${bytes(p.total)}` : p.status;
        bar.value = p.total ? (p.completed || 0) / p.total : bar.value;
      }
    } catch (e) {
      status.textContent = e.name === "AbortError" ? `The download of ${what} was cancelled.` : e.message;
    }
    cancel.hidden = bar.hidden = true;
    pulling = null;
    refresh();
  }

  bar.hidden = true;
  refresh();
  return {
    element: h("section", { class: "page" },
      h("h1", {}, "Models"),
      h("form", { class: "row", onsubmit: (e) => { e.preventDefault(); pull(name.value.trim()); } }, name, h("button", { class: "primary" }, "Pull"), cancel),
      bar, status,
      wide("Models", table(["Model", "num Size", "num Takes", "State", "hidden Action"], body))),
    close: () => pulling?.abort(),
  };
}
