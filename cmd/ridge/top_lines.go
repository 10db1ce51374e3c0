package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"ridge/hub"
	"ridge/server"
)

// statusLines describes a server in at most height lines of at most width
// characters; 0 for any. Speeds are those since before, if there is one.
func statusLines(st, before *server.Status, url string, width, height int) []string {
	state := ""
	if st.Draining {
		state = "   ends: takes no new requests"
	}
	lines := []string{fmt.Sprintf("ridge %s at %s   up %s   %s%s", st.Version, url, span(st.Uptime), st.Now.Local().Format("15:04:05"), state)}
	if len(st.Models) == 0 {
		lines = append(lines, "no model is loaded")
	}
	var rows []string
	for i := range st.Models {
		m := &st.Models[i]
		var old *server.ModelStatus
		if before != nil {
			old = modelNamed(before, m.Name)
		}
		seconds := 0.0
		if old != nil {
			seconds = st.Now.Sub(before.Now).Seconds()
		}
		lines = append(lines, modelLines(m, old, st.Now, seconds, width)...)
		rows = append(rows, sequenceRows(m, old, seconds, len(st.Models) > 1)...)
	}
	if len(rows) > 0 {
		lines = append(lines, "", fmt.Sprintf("%-14s %-8s %7s %7s %7s %7s %6s %6s %5s  %s", "REQUEST", "STATE", "PROMPT", "KNOWN", "READ", "TOKENS", "TOK/S", "AGE", "PAGES", "OF"))
		if room := height - len(lines); height > 0 && len(rows) > room {
			left := len(rows) - max(room-1, 0)
			rows = append(rows[:len(rows)-left:len(rows)-left], fmt.Sprintf("… and %d more", left))
		}
		lines = append(lines, rows...)
	}
	if height > 0 && len(lines) > height {
		lines = lines[:height]
	}
	for i := range lines {
		lines[i] = fit(lines[i], width)
	}
	return lines
}

func modelNamed(st *server.Status, name string) *server.ModelStatus {
	for i := range st.Models {
		if st.Models[i].Name == name {
			return &st.Models[i]
		}
	}
	return nil
}

// modelLines describes a model.
func modelLines(m, old *server.ModelStatus, now time.Time, seconds float64, width int) []string {
	head := fmt.Sprintf("%s: %s %s, %s parameters, %d threads, context %d", m.Name, m.Arch, m.Quant, shortCount(m.Params), m.Threads, m.Context)
	if m.Expires != nil {
		head += fmt.Sprintf(", unloads in %s", span(m.Expires.Sub(now).Seconds()))
	}
	k := &m.Memory
	part := func(n int) float64 { return 100 * over(float64(n), float64(k.Slots)) }
	lines := []string{"", head, fmt.Sprintf("  %s   %d running, %d waiting, %d paused; %d submitted", speeds(m, old, seconds), m.Running, m.Waiting, m.Paused, m.Submitted)}
	held := fmt.Sprintf("used %.1f%%, waste %.1f%% of that, cached %.1f%%", part(k.Used+k.Waste), 100*over(float64(k.Waste), float64(k.Used+k.Waste)), part(k.Cached))
	bar := 30
	if width > 0 {
		bar = min(bar, width-len(held)-10)
	}
	lines = append(lines, fmt.Sprintf("  pages %s %s", gauge(bar, k), held),
		fmt.Sprintf("  %d pages of %d tokens, %s; prefix cache found %.1f%%; %d preempted, %d evicted",
			k.Pages, k.PageTokens, hub.FormatBytes(int64(k.Pages)*k.PageBytes), 100*over(float64(m.CachedTokens), float64(m.LookedUp)), m.Preemptions, m.Evicted))
	if k.BudgetBytes > 0 {
		lines = append(lines, fmt.Sprintf("  has %s; all models %s of %s; %d pieces taken, %d given back",
			hub.FormatBytes(k.HeldBytes), hub.FormatBytes(k.BudgetUsed), hub.FormatBytes(k.BudgetBytes), k.Taken, k.Given))
	}
	if w := &m.Swap; w.Out > 0 || w.Failures > 0 {
		lines = append(lines, fmt.Sprintf("  swap: %d sequences, %s in memory, %s on disk; %d out, %d back, %d failed",
			w.Now, hub.FormatBytes(w.RAMBytes), hub.FormatBytes(w.DiskBytes), w.Out, w.In, w.Failures))
	}
	if f := &m.Prefixes; f.Pinned > 0 || f.Bytes > 0 || f.Refused > 0 {
		lines = append(lines, fmt.Sprintf("  prefixes: %d pages pinned, %d on disk, %s; %d read, %d tokens; %d refused",
			f.Pinned, f.Files, hub.FormatBytes(f.Bytes), f.Hits, f.Tokens, f.Refused))
	}
	if m.DraftTokens > 0 {
		lines = append(lines, fmt.Sprintf("  guesses: %d of %d came true (%.0f%%), %.1f s saved; %s of tables",
			m.DraftAccepted, m.DraftTokens, 100*over(float64(m.DraftAccepted), float64(m.DraftTokens)), m.DraftSaved, hub.FormatBytes(m.DraftBytes)))
	}
	if m.Shed > 0 {
		lines = append(lines, fmt.Sprintf("  %d dropped: their deadline could not be met", m.Shed))
	}
	steps, busy, kernels := float64(m.Steps), m.Busy, m.Kernels
	if old != nil && m.Steps > old.Steps {
		steps, busy, kernels = steps-float64(old.Steps), busy-old.Busy, kernels-old.Kernels
	}
	if steps > 0 {
		lines = append(lines, fmt.Sprintf("  step %.1f ms, %.1f%% of it in the model, predicted with %.1f%% error", 1e3*busy/steps, 100*over(kernels, busy), 100*m.StepError))
	}
	return lines
}

// speeds of a model: those of the last interval, or the tokens so far.
func speeds(m, old *server.ModelStatus, seconds float64) string {
	if old == nil || seconds <= 0 {
		return fmt.Sprintf("%d tokens read, %d generated", m.PromptTokens, m.GeneratedTokens)
	}
	return fmt.Sprintf("prefill %.0f tok/s, decode %.0f tok/s", float64(m.PromptTokens-old.PromptTokens)/seconds, float64(m.GeneratedTokens-old.GeneratedTokens)/seconds)
}

// gauge shows what pages are used for: full for tokens, light for the cache.
func gauge(width int, k *server.MemoryStatus) string {
	if width < 4 || k.Slots == 0 {
		return ""
	}
	n := func(slots int) int {
		if slots == 0 {
			return 0
		}
		return max(1, width*slots/k.Slots) // what is there is seen
	}
	used := n(k.Used + k.Waste)
	cached := min(n(k.Cached), width-used)
	return strings.Repeat("█", used) + strings.Repeat("▒", cached) + strings.Repeat("·", max(0, width-used-cached))
}

// sequenceRows has a row for each sequence.
func sequenceRows(m, old *server.ModelStatus, seconds float64, many bool) []string {
	type key struct {
		id     string
		choice int
	}
	then := map[key]int{}
	if old != nil {
		for i := range old.Sequences {
			q := &old.Sequences[i]
			then[key{q.ID, q.Choice}] = q.Tokens
		}
	}
	var rows []string
	for i := range m.Sequences {
		q := &m.Sequences[i]
		speed := ""
		if n, ok := then[key{q.ID, q.Choice}]; ok && seconds > 0 && q.State == "running" {
			speed = fmt.Sprintf("%.1f", float64(q.Tokens-n)/seconds)
		}
		state := q.State
		if q.Position >= 0 {
			state = fmt.Sprintf("%.4s %d", q.State, q.Position+1)
		}
		id := q.ID
		if q.Choice > 0 {
			id = fmt.Sprintf("%s#%d", id, q.Choice)
		}
		of := q.Tenant
		if many {
			of = strings.TrimSpace(m.Name + " " + of)
		}
		rows = append(rows, fmt.Sprintf("%-14s %-8s %7d %7d %7d %7d %6s %6s %5d  %s", fit(id, 14), fit(state, 8), q.Prompt, q.Known, min(q.Computed, q.Prompt), q.Tokens, speed, span(q.Age), q.Pages, printable(of)))
	}
	return rows
}

// printable is s without what could move the cursor: names come from clients.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// fit cuts s to width columns; 0 for any.
func fit(s string, width int) string {
	if s = printable(s); width <= 0 {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

// span is a duration in at most two units.
func span(seconds float64) string {
	d := time.Duration(max(seconds, 0) * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

func shortCount(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1fB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.0fM", float64(n)/1e6)
	}
	return fmt.Sprint(n)
}

func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
