// What the engine does now: one stream of events for all views.
import { call, events, get } from "./api.js";

const kept = 120; // steps

// watch calls changed with { status, steps, lost } as events come, until the
// function that it returns is called. steps are the last ones of each model.
export function watch(changed) {
  const stop = new AbortController();
  const state = { status: null, steps: {}, lost: null };
  const add = (model, steps) => {
    const all = (state.steps[model] || []).concat(steps);
    state.steps[model] = all.slice(-kept);
  };
  (async () => {
    for (let wait = 500; !stop.signal.aborted; wait = Math.min(2 * wait, 10000)) {
      try {
        const r = await call("/ridge/events", { signal: stop.signal });
        for await (const { name, data } of events(r)) {
          wait = 500;
          state.lost = null;
          if (name === "status") {
            for (const m of data.models) {
              if (state.steps[m.name]) continue;
              state.steps[m.name] = [];
              get(`/ridge/steps?last=${kept}&model=${encodeURIComponent(m.name)}`, { signal: stop.signal }).then((past) => {
                const first = state.steps[m.name][0]?.n ?? Infinity;
                state.steps[m.name] = past.steps.filter((s) => s.n < first).concat(state.steps[m.name]).slice(-kept);
              }, () => {});
            }
            state.status = data;
          } else if (name === "steps") add(data.model, data.steps);
          changed(state);
        }
        state.lost = "The server has ended the stream.";
      } catch (e) {
        if (e.name === "AbortError") return;
        state.lost = e.message;
      }
      changed(state);
      await new Promise((r) => setTimeout(r, wait));
    }
  })();
  return () => stop.abort();
}
