// The page: which view is shown, and what all of them share.
import { view as chat } from "./chat.js";
import { view as compare } from "./compare.js";
import { fill, h } from "./dom.js";
import { view as engine } from "./engine.js";
import { view as models } from "./models.js";
import { keys, requests } from "./requests.js";
import { view as tokens } from "./tokens.js";

const views = { chat, compare, tokens, engine, models, requests, keys };

// The frame is in the document already, so that it is painted before this runs.
const main = document.getElementById("main");
const nav = document.querySelector("nav");
let current = null;

// show opens the view that the address names. Chat stays, so that an answer goes
// on while another view is open.
let kept = null;
function show() {
  const name = views[location.hash.slice(1)] ? location.hash.slice(1) : "chat";
  if (current && current !== kept) current.close();
  current = name === "chat" ? kept ??= chat() : views[name]();
  fill(main, current.element);
  for (const a of nav.children) {
    if (a.dataset.view !== name) { a.removeAttribute("aria-current"); continue; }
    a.setAttribute("aria-current", "page");
    document.title = a.textContent + " · ridge";
    // On a narrow screen the views are wider than it.
    nav.scrollLeft = Math.max(0, a.offsetLeft - nav.offsetLeft - (nav.clientWidth - a.offsetWidth) / 2);
  }
  current.focus?.();
}

const theme = h("button", { type: "button", class: "plain", onclick: () => setTheme(document.documentElement.dataset.theme === "dark" || !document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches ? "light" : "dark") }, "Theme");
function setTheme(v) {
  document.documentElement.dataset.theme = v;
  localStorage.setItem("ridge-theme", v);
}
if (localStorage.getItem("ridge-theme")) setTheme(localStorage.getItem("ridge-theme"));

document.body.prepend(h("a", { href: "#main", class: "skip", onclick: (e) => { e.preventDefault(); main.focus(); } }, "Skip to the view"));
document.querySelector(".top").append(theme);
addEventListener("hashchange", show);
show();
