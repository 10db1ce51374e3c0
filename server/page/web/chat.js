// The conversation: its messages, the composer, and what is done with answers.
import { post } from "./api.js";
import { ask, bytes, count, fill, h, later, paced, say, soon } from "./dom.js";
import { message } from "./message.js";
import { better, download, limit, picker, pullParts } from "./models.js";
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
    if (!chat.roots.length) draw();
    measure();
  });
  let options = panel(chat.settings, () => keep());
  const drawer = h("details", { class: "drawer" }, h("summary", {}, "Settings"), options);
  const removed = (id) => {
    gone.add(id);
    if (id === chat.id) open(null);
  };
  const side = sidebar({ open, fresh: () => open(null), removed, brought: (ids) => ids.forEach((id) => gone.delete(id)) });
  const gone = new Set(); // ids of deleted conversations, whose answers may still come

  // write saves a conversation. keep does it a moment later, and while an answer
  // comes every five seconds.
  async function write(c) {
    if (!c.roots.length || gone.has(c.id)) return;
    try {
      await store.put(c);
      side.refresh(chat.id);
    } catch (e) { say("The browser cannot keep this conversation: " + e.message, "error"); }
  }
  const keep = soon(300, 5000, () => write(chat));

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

  // offer proposes a model to pull where none is here that answers questions.
  let offered = null;
  function offer() {
    const m = better();
    if (!m) return null;
    const parts = pullParts();
    const get = h("button", {
      type: "button", class: "primary", onclick: async () => {
        get.disabled = true;
        const done = await download(m.name, parts);
        get.disabled = false;
        if (!done) return;
        offered = null;
        await model.choose(m.name);
      },
    }, `Get ${m.name} (${bytes(m.bytes)})`);
    return h("div", { class: "offer" }, h("p", {}, "Only tiny is here, a toy inside the program. For real answers:"), h("div", { class: "row" }, get, parts.cancel), parts.bar, parts.status);
  }

  // draw shows the messages of the branch. Those that were shown stay.
  function draw() {
    const path = store.path(chat);
    if (!path.length) {
      fill(log, h("div", { class: "empty" }, h("h1", {}, "What would you like to know?"),
        h("p", { class: "quiet" }, "Everything stays on this machine: the model runs here, conversations are kept in this browser."), offered ??= offer()));
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
    // Ten times a second are often enough to read, and none while the view is away.
    const follow = paced(100, () => {
      if (!log.isConnected) return;
      const end = atEnd();
      shown.get(node.id)?.update(running?.node === node);
      if (end) toEnd();
    });
    draw();
    toEnd();
    write(mine);
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

  // goOn lets the model write on behind what node has: from the start if that is
  // nothing yet.
  function goOn(node) {
    if (!node.content) {
      Object.assign(node, { reasoning: "", tokens: [], calls: undefined });
      return answer(node, body(chat.model || model.value, chat.settings, store.path(chat, node.parent)));
    }
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
    // request is what the answer was asked for with, whatever the settings are now.
    request: (node) => {
      const m = node.meta || {}, before = store.path(chat, node.parent);
      if (m.asked) return { ...m.asked, messages: body("", { system: m.system }, before).messages };
      return withSeed({ ...body(chat.model || model.value, chat.settings, before), ...(m.seed == null ? {} : { seed: m.seed }) });
    },
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
  return { element: h("div", { class: "split" }, side.element, main), focus: () => { if (running) shown.get(running.node.id)?.update(true); text.focus(); }, close: () => running?.stop.abort() };
}
