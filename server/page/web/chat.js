// The conversation: its messages, the composer, and what is done with answers.
import { post } from "./api.js";
import { ask, count, fill, h, later, perFrame, say, soon } from "./dom.js";
import { message } from "./message.js";
import { limit, picker } from "./models.js";
import { body, collect, withSeed } from "./request.js";
import { panel } from "./settings.js";
import { sidebar } from "./sidebar.js";
import * as store from "./store.js";

const lastModel = "ridge-model";
const maxFile = 1 << 20; // bytes of a text that is dropped in

export function view() {
  let chat = store.create(localStorage.getItem(lastModel), {});
  let running = null; // { stop, node } while an answer comes
  const shown = new Map(); // id of a message → its element
  const log = h("div", { class: "log", role: "log", "aria-label": "Conversation" });
  const text = h("textarea", { rows: 1, placeholder: "Ask something", "aria-label": "Message" });
  const send = h("button", { class: "primary" }, "Send");
  const meter = h("div", { class: "meter" });
  const model = picker(chat.model, (v) => {
    chat.model = v;
    localStorage.setItem(lastModel, v);
    options.defaultsOf(v);
    measure();
  });
  let options = panel(chat.settings, () => keep());
  const drawer = h("details", { class: "drawer" }, h("summary", {}, "Settings"), options);
  const removed = (id) => {
    if (id !== chat.id) return;
    gone.add(chat);
    open(null);
  };
  const side = sidebar({ open, fresh: () => open(null), removed });
  const gone = new WeakSet(); // deleted conversations, whose answers may still come

  // write saves a conversation. keep does it a moment later, and while an answer
  // comes every two seconds.
  async function write(c) {
    if (!c.roots.length || gone.has(c)) return;
    try {
      await store.put(c);
      side.refresh(chat.id);
    } catch (e) { say("The browser cannot keep this conversation: " + e.message, "error"); }
  }
  const keep = soon(300, 2000, () => write(chat));

  async function open(id) {
    running?.stop.abort();
    await write(chat);
    chat = (id && await store.get(id)) || store.create(model.value, {});
    if (chat.model) model.choose(chat.model);
    const old = options;
    options = panel(chat.settings, () => keep());
    old.replaceWith(options);
    options.defaultsOf(chat.model || model.value);
    shown.clear();
    draw();
    side.refresh(chat.id);
    measure();
    text.focus();
  }

  // draw shows the messages of the branch. Those that were shown stay.
  function draw() {
    const path = store.path(chat);
    if (!path.length) {
      fill(log, h("div", { class: "empty" }, h("h1", {}, "What would you like to know?"),
        h("p", { class: "quiet" }, "Everything stays on this machine: the model runs here, conversations are kept in this browser.")));
      return;
    }
    fill(log, path.map((n) => {
      let m = shown.get(n.id);
      if (!m) shown.set(n.id, m = message(n, acts));
      m.branches(store.siblings(chat, n));
      m.update(running?.node === n);
      return m.element;
    }));
  }

  const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };

  // answer lets the model write node, which is there already.
  async function answer(node, request) {
    const stop = new AbortController(), mine = chat;
    running = { stop, node };
    send.textContent = "Stop";
    const follow = perFrame(() => {
      const end = atEnd();
      shown.get(node.id)?.update(running?.node === node);
      if (end) toEnd();
    });
    draw();
    toEnd();
    await collect(node, withSeed(request), stop.signal, () => { follow(); if (mine === chat) keep(); });
    if (running?.node === node) running = null;
    send.textContent = running ? "Stop" : "Send";
    shown.get(node.id)?.update(false);
    write(mine);
    measure();
  }

  // reply asks for an answer to the branch that ends at parent.
  function reply(parent) {
    let request;
    try {
      request = body(chat.model || model.value, chat.settings, store.path(chat, parent));
    } catch (e) { return say("The settings are not right: " + e.message, "error"); }
    answer(store.add(chat, parent, { role: "assistant" }), request);
  }

  // goOn lets the model write on behind what node has.
  function goOn(node) {
    const request = body(chat.model || model.value, chat.settings, store.path(chat, node.id));
    answer(node, { ...request, add_generation_prompt: false, continue_final_message: true });
  }

  const acts = {
    edit: async (node) => {
      const area = h("textarea", { rows: 8, value: node.content, "aria-label": "Message" });
      const v = await ask(node.role === "user" ? "Edit and send again" : "Edit the answer", area, [{ label: node.role === "user" ? "Send" : "Keep", value: () => area.value }]);
      if (v == null || v === node.content) return;
      const copy = store.add(chat, node.parent, { role: node.role, content: v });
      if (node.role === "user") reply(copy.id);
      else { draw(); keep(); }
    },
    again: (node) => running ? say("An answer is under way.") : reply(node.parent),
    goOn: (node) => running ? say("An answer is under way.") : goOn(node),
    turn: (id) => { store.goTo(chat, id); draw(); keep(); measure(); },
    // branch takes another token at a place of an answer, and goes on from there.
    branch: (node, i, token) => {
      if (running) return say("An answer is under way.");
      const kept = node.tokens.slice(0, i).filter((t) => !t.end);
      const content = kept.map((t) => t.text).join("") + token.text;
      const copy = store.add(chat, node.parent, { role: "assistant", content, tokens: [...kept, { ...token, picked: true, top: [] }] });
      goOn(copy);
    },
    request: (node) => withSeed({ ...body(chat.model || model.value, chat.settings, store.path(chat, node.parent)), ...(node.meta?.seed == null ? {} : { seed: node.meta.seed }) }),
  };

  function submit() {
    if (running) return running.stop.abort();
    const content = text.value.trim();
    if (!content) return;
    text.value = "";
    grow();
    reply(store.add(chat, chat.leaf, { role: "user", content }).id);
  }

  const grow = () => {
    text.style.height = "auto";
    text.style.height = Math.min(text.scrollHeight + 2, 260) + "px";
  };

  // measure shows how full the context will be.
  const measure = later(400, async () => {
    const most = limit(model.value);
    if (!most || running) return;
    let used;
    try {
      const messages = [...store.path(chat), ...(text.value.trim() ? [{ role: "user", content: text.value }] : [])];
      if (!messages.length) return fill(meter);
      used = (await post("/v1/chat/completions/input_tokens", body(model.value, { system: chat.settings.system, tools: chat.settings.tools }, messages))).input_tokens;
    } catch { return fill(meter); }
    const part = used / most;
    fill(meter, h("progress", { max: most, value: Math.min(used, most), "aria-label": "Context used" }),
      h("span", { class: part > 0.8 ? "bad" : "quiet" }, `${count(used)} of ${count(most)} tokens` + (part > 1 ? ": too long for this model" : part > 0.8 ? ": the context is nearly full" : "")));
  });

  text.addEventListener("input", () => { grow(); measure(); });
  text.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
    if (e.key === "Escape" && running) running.stop.abort();
  });
  const take = async (files) => {
    for (const f of files) {
      if (f.size > maxFile) { say(`${f.name} has more than 1 MB.`, "error"); continue; }
      const t = await f.text();
      if (t.includes("\u0000")) { say(`${f.name} is no text.`, "error"); continue; }
      const fence = "`".repeat(Math.max(3, ...(t.match(/`+/g) || []).map((x) => x.length + 1)));
      text.value += `${text.value && "\n"}${f.name}:\n${fence}\n${t.trimEnd()}\n${fence}\n`;
    }
    grow();
    measure();
    text.focus();
  };
  const files = h("input", { type: "file", multiple: true, hidden: true, onchange: () => { take(files.files); files.value = ""; } });
  const form = h("form", { class: "composer", onsubmit: (e) => { e.preventDefault(); submit(); } },
    text, h("div", { class: "row" }, h("button", { type: "button", class: "plain", title: "Add text files", onclick: () => files.click() }, "Add file"), files, meter, send));
  const main = h("section", { class: "chat", ondragover: (e) => e.preventDefault(), ondrop: (e) => { e.preventDefault(); take(e.dataTransfer.files); } },
    h("div", { class: "bar" }, side.toggle, model, h("button", { type: "button", onclick: () => open(null) }, "New")), drawer, log, form);
  draw();
  side.refresh(chat.id);
  if (model.value) options.defaultsOf(model.value);
  return { element: h("div", { class: "split" }, side.element, main), focus: () => text.focus(), close: () => running?.stop.abort() };
}
