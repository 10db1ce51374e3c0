// Conversations, kept in the browser. A conversation is a tree: an edited
// question and another answer are branches beside the first ones.

let db;

function open() {
  db ??= new Promise((resolve, reject) => {
    const r = indexedDB.open("ridge", 1);
    r.onupgradeneeded = () => r.result.createObjectStore("conversations", { keyPath: "id" });
    r.onsuccess = () => resolve(r.result);
    r.onerror = () => reject(r.error);
  });
  return db;
}

async function run(mode, f) {
  const tx = (await open()).transaction("conversations", mode);
  const r = f(tx.objectStore("conversations"));
  return new Promise((resolve, reject) => {
    tx.oncomplete = () => resolve(r?.result);
    tx.onerror = tx.onabort = () => reject(tx.error);
  });
}

const newID = () => Date.now().toString(36) + Math.random().toString(36).slice(2, 8);

export const list = async () => (await run("readonly", (s) => s.getAll())).sort((a, b) => b.updated - a.updated);
export const get = (id) => run("readonly", (s) => s.get(id));
export const put = (c) => { c.updated = Date.now(); return run("readwrite", (s) => s.put(c)); };
export const remove = (id) => run("readwrite", (s) => s.delete(id));

// create makes a conversation, which is kept from its first message on.
export const create = (model, settings) => ({ id: newID(), title: "", model, settings: settings || {}, created: Date.now(), updated: Date.now(), nodes: {}, roots: [], leaf: null });

// add puts a message behind parent, null for the first, and goes there.
export function add(c, parent, node) {
  const n = { id: newID(), parent, children: [], content: "", ...node };
  c.nodes[n.id] = n;
  (parent ? c.nodes[parent].children : c.roots).push(n.id);
  c.leaf = n.id;
  if (!c.title && n.role === "user") c.title = n.content.trim().split("\n")[0].slice(0, 60);
  return n;
}

// path returns the messages from the first to id.
export function path(c, id = c.leaf) {
  const out = [];
  for (let n = c.nodes[id]; n; n = c.nodes[n.parent]) out.unshift(n);
  return out;
}

// siblings returns the branches beside a message, itself included.
export const siblings = (c, n) => n.parent ? c.nodes[n.parent].children : c.roots;

// goTo shows the branch of a message, to the end of its last children.
export function goTo(c, id) {
  let n = c.nodes[id];
  while (n.children.length) n = c.nodes[n.children.at(-1)];
  c.leaf = n.id;
}

// Files of conversations say what they are.
const format = "ridge-conversations";

export const exported = (all) => JSON.stringify({ format, version: 1, conversations: all }, null, 1);

// imported checks a file, and returns its conversations.
export function imported(text) {
  let file;
  try { file = JSON.parse(text); } catch { throw new Error("The file is no JSON."); }
  if (file?.format !== format || file.version !== 1 || !Array.isArray(file.conversations)) throw new Error(`Expected a file of ${format}, version 1.`);
  for (const c of file.conversations) {
    const ok = typeof c.id === "string" && typeof c.title === "string" && Array.isArray(c.roots) && c.nodes && typeof c.nodes === "object" &&
      Object.values(c.nodes).every((n) => typeof n.content === "string" && ["user", "assistant"].includes(n.role) && Array.isArray(n.children) &&
        n.children.every((k) => c.nodes[k]?.parent === n.id) && (n.parent == null || c.nodes[n.parent])) &&
      c.roots.every((k) => c.nodes[k]) && (c.leaf == null || c.nodes[c.leaf]);
    if (!ok) throw new Error("A conversation of the file is damaged.");
  }
  return file.conversations;
}
