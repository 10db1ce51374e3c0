// The last requests, and the keys that may send some.
import { get } from "./api.js";
import { count, h, seconds, table, wide } from "./dom.js";
import { turns } from "./markdown.js";

// list shows what load returns, again every two seconds while the tab is seen. Rows
// of what did not change stay as they are.
function list(title, columns, load, row, none) {
  const body = h("tbody");
  const note = h("p", { class: "quiet", role: "status" }, "…");
  let rows = new Map(); // what a row shows → the row
  const show = async () => {
    try {
      const all = (await load()).map((x) => [JSON.stringify(x), x]), was = rows;
      rows = new Map(all.map(([text, x]) => [text, was.get(text) || row(x)]));
      const now = [...rows.values()];
      if (now.length !== body.children.length || now.some((r, i) => r !== body.children[i])) body.replaceChildren(...now);
      note.textContent = now.length ? "" : none;
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

// client is a program as it names itself, a browser by its name alone.
const client = (agent) => !agent.startsWith("Mozilla/") ? agent : /(Firefox|Edg|Chrome|Safari)\//.exec(agent)?.[1]?.replace("Edg", "Edge") || agent;

export const requests = () => list("Requests", ["Time", "Route", "Model", "Client", "State", "num Prompt tokens", "num Cached", "num Answer tokens", "num First token", "num Whole", "End"],
  async () => (await get("/ridge/requests?last=200")).requests,
  (r) => h("tr", { "data-request": r.id },
    h("td", {}, h("time", { title: new Date(1000 * r.at).toLocaleString() }, new Date(1000 * r.at).toLocaleTimeString()), r.prompt ? h("details", {}, h("summary", {}, "texts"), h("pre", { class: "plain-text" }, turns(r.prompt)), h("pre", { class: "plain-text" }, turns(r.answer || ""))) : null),
    h("td", {}, r.route), h("td", {}, r.model || ""), h("td", { class: "short", title: r.client }, turns(client(r.client || ""))), h("td", {}, r.state === "done" ? r.status : r.state),
    cell(count(r.prompt_tokens)), cell(count(r.cached_tokens)), cell(count(r.generated_tokens)), cell(r.first_token_s ? seconds(r.first_token_s) : "–"), cell(seconds(r.total_s)), h("td", {}, r.finish || "")), "No request came yet.");

export const keys = () => list("Keys", ["Name", "num Requests", "num Prompt tokens", "num Answer tokens", "num Tokens today", "Limits"],
  async () => (await get("/ridge/keys")).keys,
  (k) => h("tr", {}, h("td", {}, k.name, k.admin ? h("span", { class: "quiet" }, " (admin)") : null), cell(count(k.requests)), cell(count(k.prompt_tokens)), cell(count(k.generated_tokens)), cell(count(k.tokens_today)),
    h("td", {}, Object.entries(k.limits || {}).filter(([, v]) => v).map(([n, v]) => `${n.replaceAll("_", " ")}: ${count(v)}`).join(", ") || "none")),
  "This server asks for no keys. Start it with --api-key or --api-key-file to have some.");
