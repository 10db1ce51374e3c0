// The LoRA adapters of the server: those that requests may name in a model's place.
import { call, get } from "./api.js";
import { bytes, count, fill, h, say, table, wide } from "./dom.js";

// adapters lists them, loads and unloads.
export function adapters() {
  const body = h("tbody");
  const note = h("p", { class: "quiet", role: "status" });
  const name = h("input", { placeholder: "Name", "aria-label": "Name of the adapter for requests", required: true, maxLength: 100, pattern: "[^\\s\\\\]+", title: "without spaces" });
  const file = h("select", { "aria-label": "File of the adapter", onchange: () => { if (!name.value || name.value === suggested) name.value = suggested = plain(file.value); } });
  const base = h("select", { "aria-label": "Model that the adapter changes" });
  const form = h("form", { class: "row", hidden: true, onsubmit: (e) => { e.preventDefault(); load(); } }, file, name, "for", base, h("button", { class: "primary" }, "Load"));
  const list = wide("Adapters", table(["Adapter", "Changes", "num Rank", "num Size", "Used by", "State", "hidden Action"], body));
  let models = [], suggested = "";

  const plain = (path) => path.replace(/\.(gguf|safetensors)$/, "").replace(/[\s\\]+/g, "-");

  async function change(path, request) {
    try {
      await call(path, { body: request });
      return true;
    } catch (e) { say(e.message, "error"); } finally { await refresh(); }
  }

  async function load() {
    if (await change("/v1/load_lora_adapter", { lora_name: name.value, lora_path: file.value, base_model_name: base.value })) say(`${name.value} can be chosen as a model now.`);
  }

  // users says who has an adapter now.
  const users = (a) => [a.running ? count(a.running) + (a.running === 1 ? " request" : " requests") : "", a.waiting ? count(a.waiting) + " waiting" : "", a.scale ? `all of ${a.base_model}, at ${a.scale}` : ""].filter(Boolean).join(", ") || "nobody now";

  const row = (a) => h("tr", { "data-adapter": a.name },
    h("td", {}, h("b", {}, a.name), h("div", { class: "quiet" }, a.source)), h("td", {}, a.base_model), h("td", { class: "num" }, a.rank || "–"), h("td", { class: "num" }, a.bytes ? bytes(a.bytes) : "–"),
    h("td", {}, users(a)), h("td", {}, h("span", { class: "badge " + (a.loaded ? "loaded" : "here") }, a.loaded ? "in memory" : "read when it is wanted")),
    h("td", {}, a.removable ? h("button", { type: "button", onclick: (e) => { e.target.disabled = true; change("/v1/unload_lora_adapter", { lora_name: a.name }); } }, "Unload") : null));

  // options fills a list of choices, and keeps what was chosen.
  function options(select, names) {
    const was = select.value;
    fill(select, names.map((n) => h("option", { value: n }, n)));
    if (names.includes(was)) select.value = was;
  }

  // refresh asks for the adapters; loaded are the models that may be changed.
  async function refresh(loaded = models) {
    models = loaded;
    let all;
    try {
      all = await get("/ridge/adapters");
    } catch (e) { return say(e.message, "error"); }
    fill(body, all.adapters.map(row));
    list.hidden = !all.adapters.length;
    options(file, all.available);
    options(base, models);
    if (!name.value) name.value = suggested = plain(file.value);
    form.hidden = !all.clients_load || !all.available.length || !models.length;
    note.textContent = !all.clients_load ? (all.adapters.length ? "" : "None. ") + "An adapter is given at the start with --lora NAME=FILE; with --lora-dir FOLDER, those of a folder can be loaded here."
      : all.available.length ? "" : "The folder of --lora-dir has no adapters.";
  }

  return { element: h("section", { class: "adapters" }, h("h2", {}, "Adapters"), form, note, list), refresh };
}
