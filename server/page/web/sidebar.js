// The list of conversations.
import { ask, fill, h, save, say } from "./dom.js";
import * as store from "./store.js";

export function sidebar({ open, fresh, removed, brought }) {
  const list = h("ul", { class: "conversations" });
  const find = h("input", { type: "search", placeholder: "Search", "aria-label": "Search conversations", oninput: () => refresh() });
  const file = h("input", { type: "file", accept: ".json", hidden: true, onchange: () => bring() });
  let current = null;

  async function refresh(id = current) {
    current = id;
    const want = find.value.toLowerCase();
    const all = (await store.list()).filter((c) => !want || c.title.toLowerCase().includes(want) || Object.values(c.nodes).some((n) => n.content.toLowerCase().includes(want)));
    fill(list, all.map((c) => h("li", { class: c.id === current ? "current" : "" },
      h("button", { class: "plain title", "aria-current": c.id === current ? "true" : null, onclick: () => { element.classList.remove("open"); open(c.id); } }, c.title || "Untitled"),
      h("button", { class: "plain", "aria-label": "Delete " + (c.title || "conversation"), onclick: () => forget(c) }, "×"))));
  }

  async function forget(c) {
    if (!await ask("Delete this conversation?", h("p", {}, c.title), [{ label: "Delete" }])) return;
    removed(c.id); // first, so that nobody keeps it again
    await store.remove(c.id);
    refresh();
  }

  async function bring() {
    try {
      const all = store.imported(await file.files[0].text());
      for (const c of all) await store.put(c);
      brought(all.map((c) => c.id));
      say(`${all.length} conversations were read.`);
      refresh();
    } catch (e) { say(e.message, "error"); }
    file.value = "";
  }

  const element = h("aside", { class: "side", "aria-label": "Conversations" },
    h("div", { class: "row" }, h("button", { class: "primary", onclick: () => { element.classList.remove("open"); fresh(); } }, "New conversation")),
    find, list,
    h("div", { class: "row" },
      h("button", { class: "plain", onclick: async () => save("conversations.json", new Blob([store.exported(await store.list())], { type: "application/json" })) }, "Export"),
      h("button", { class: "plain", onclick: () => file.click() }, "Import"), file));
  const toggle = h("button", { type: "button", class: "narrow", "aria-label": "Conversations", onclick: () => element.classList.toggle("open") }, "☰");
  return { element, toggle, refresh };
}
