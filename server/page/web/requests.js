// The last requests, and the keys that may send some.
import { get } from "./api.js";
import { count, fill, h, seconds, table, wide } from "./dom.js";
import { turns } from "./markdown.js";

// list shows what load returns, again every two seconds.
function list(title, columns, load, row) {
  const body = h("tbody");
  const note = h("p", { class: "quiet", role: "status" });
  const show = async () => {
    try {
      const all = await load();
      fill(body, all.map(row));
      note.textContent = all.length ? "" : "Nothing yet.";
    } catch (e) { note.textContent = e.message; }
  };
  show();
  const timer = setInterval(() => document.hidden || show(), 2000);
  return {
    element: h("section", { class: "page" }, h("h1", {}, title), note, wide(title, table(columns, body))),
    close: () => clearInterval(timer),
  };
}

const cell = (v) => h("td", { class: "num" }, v);

export const requests = () => list("Requests", ["Time", "Route", "Model", "Client", "State", "num Prompt", "num Cached", "num Answer", "num First token", "num Whole", "End"],
  async () => (await get("/ridge/requests?last=200")).requests,
  (r) => h("tr", { "data-request": r.id },
    h("td", {}, new Date(r.at).toLocaleTimeString(), r.prompt ? h("details", {}, h("summary", {}, "texts"), h("pre", { class: "plain-text" }, turns(r.prompt)), h("pre", { class: "plain-text" }, turns(r.answer || ""))) : null),
    h("td", {}, r.route), h("td", {}, r.model || ""), h("td", { class: "short", title: r.client }, turns(r.client || "")), h("td", {}, r.state === "done" ? r.status : r.state),
    cell(count(r.prompt_tokens)), cell(count(r.cached_tokens)), cell(count(r.generated_tokens)), cell(r.first_token_s ? seconds(r.first_token_s) : "–"), cell(seconds(r.total_s)), h("td", {}, r.finish || "")));

export const keys = () => list("Keys", ["Name", "num Requests", "num Prompt tokens", "num Answer tokens", "Limits"],
  async () => (await get("/ridge/keys")).keys,
  (k) => h("tr", {}, h("td", {}, k.name), cell(count(k.requests)), cell(count(k.prompt_tokens)), cell(count(k.generated_tokens)),
    h("td", {}, Object.entries(k.limits || {}).filter(([, v]) => v).map(([n, v]) => `${n.replaceAll("_", " ")}: ${count(v)}`).join(", ") || "none")));
