// What the engine does now: one stream of events for all views.
import { call, events, get } from "./api.js";

const kept = 120; // steps

// watch calls changed with { status, steps, lost } as events come, until the
// function that it returns is called. steps are the last ones of each model. While
// the tab is hidden nothing is asked for.
export function watch(changed) {
  const stop = new AbortController();
  const state = { status: null, steps: {}, lost: null };
  const add = (model, steps) => {
    const all = (state.steps[model] || []).concat(steps);
    state.steps[model] = all.slice(-kept);
  };

  // read follows one stream to its end.
  async function read(signal) {
    const known = new Set(); // models whose earlier steps were asked for
    for await (const { name, data } of events(await call("/ridge/events", { signal }))) {
      state.lost = null;
      if (name === "status") {
        for (const m of data.models) {
          if (known.has(m.name)) continue;
          known.add(m.name);
          get(`/ridge/steps?last=${kept}&model=${encodeURIComponent(m.name)}`, { signal }).then((past) => {
            const later = (state.steps[m.name] || []).filter((s) => s.n > (past.steps.at(-1)?.n ?? 0));
            state.steps[m.name] = past.steps.concat(later).slice(-kept);
          }, () => {});
        }
        state.status = data;
      } else if (name === "steps") add(data.model, data.steps);
      changed(state);
    }
    state.lost = "The server has ended the stream.";
  }

  // visible waits until the tab is seen.
  const visible = () => new Promise((go) => {
    const look = () => {
      if (document.hidden && !stop.signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      stop.signal.removeEventListener("abort", look);
      go();
    };
    document.addEventListener("visibilitychange", look);
    stop.signal.addEventListener("abort", look);
    look();
  });

  (async () => {
    for (let wait = 500; !stop.signal.aborted;) {
      await visible();
      const one = new AbortController(), hide = () => document.hidden && one.abort(), end = () => one.abort();
      document.addEventListener("visibilitychange", hide);
      stop.signal.addEventListener("abort", end);
      const began = performance.now();
      try {
        if (!stop.signal.aborted) await read(one.signal);
      } catch (e) {
        if (e.name !== "AbortError") state.lost = e.message;
      }
      document.removeEventListener("visibilitychange", hide);
      stop.signal.removeEventListener("abort", end);
      if (one.signal.aborted) continue;
      changed(state);
      wait = performance.now() - began > 2000 ? 500 : Math.min(2 * wait, 10000);
      await new Promise((r) => setTimeout(r, wait));
    }
  })();
  return () => stop.abort();
}
