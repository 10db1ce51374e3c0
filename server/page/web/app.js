// The page: which view is shown, and what all of them share.
import { view as chat } from "./chat.js";
import { view as compare } from "./compare.js";
import { fill, h } from "./dom.js";
import { view as engine } from "./engine.js";
import { view as models } from "./models.js";
import { keys, requests } from "./requests.js";
import { view as tokens } from "./tokens.js";

const views = { chat: ["Chat", chat], compare: ["Side by side", compare], tokens: ["Tokens", tokens], engine: ["Engine", engine], models: ["Models", models], requests: ["Requests", requests], keys: ["Keys", keys] };

const main = h("main", { id: "main", tabIndex: -1 });
const nav = h("nav", { "aria-label": "Views" }, Object.entries(views).map(([name, [label]]) => h("a", { href: "#" + name, "data-view": name }, label)));
let current = null;

// show opens the view that the address names. Chat stays, so that an answer goes
// on while another view is open.
let kept = null;
function show() {
  const name = views[location.hash.slice(1)] ? location.hash.slice(1) : "chat";
  if (current && current !== kept) current.close();
  current = name === "chat" ? kept ??= chat() : views[name][1]();
  fill(main, current.element);
  for (const a of nav.children) a.dataset.view === name ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
  document.title = views[name][0] + " · ridge";
  current.focus?.();
}

const theme = h("button", { type: "button", class: "plain", onclick: () => setTheme(document.documentElement.dataset.theme === "dark" || !document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches ? "light" : "dark") }, "Theme");
function setTheme(v) {
  document.documentElement.dataset.theme = v;
  localStorage.setItem("ridge-theme", v);
}
if (localStorage.getItem("ridge-theme")) setTheme(localStorage.getItem("ridge-theme"));

document.body.append(h("a", { href: "#main", class: "skip", onclick: (e) => { e.preventDefault(); main.focus(); } }, "Skip to the view"),
  h("header", { class: "top" }, h("span", { class: "brand" }, "ridge"), nav, theme), main);
addEventListener("hashchange", show);
show();
