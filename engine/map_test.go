package engine

import (
	"testing"

	"ridge/kvcache"
)

// Pages are told with the sequences that hold them, the prefix tree with its tenants.
func TestPageMap(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{Events: 2})
	r := long(50)
	for len(r.Tokens) < 40 {
		r.Tokens = append(r.Tokens, int32(len(r.Tokens)%50))
	}
	r.ID, r.Tenant, r.N = "a", "1:x", 2
	s := submit(t, e, r)
	until(t, "nobody reads and the request pauses", func() bool { return e.Stats().Paused == 1 })
	m, seqs, err := e.PageMap(t.Context(), 10, 5)
	if err != nil {
		t.Fatal(err)
	}
	held := map[kvcache.PageUse]int{}
	for i, u := range m.Use {
		held[u]++
		if shared := m.Owners[i] > 1; (u == kvcache.PageShared) != shared || (m.Owner[i] >= 0) != (m.Owners[i] > 0) {
			t.Errorf("page %d: %c of %d, %d owners", i, u, m.Owner[i], m.Owners[i])
		}
	}
	pages := held[kvcache.PageUsed] + 2*held[kvcache.PageShared]
	if len(seqs) != 2 || seqs[0].ID != "a" || seqs[1].Choice != 1 || seqs[0].Pages+seqs[1].Pages != pages || held[kvcache.PageShared] < 2 {
		t.Errorf("%v of %+v", held, seqs)
	}
	if len(m.Nodes) == 0 || m.Nodes[0].Salt != "1:x" || m.Nodes[0].Users != 2 || len(m.Nodes[0].Head) != 5 {
		t.Errorf("%+v", m.Nodes)
	}
	s.Close()
	for salt, want := range map[string]string{"": "", salt("bob", ""): "bob", salt("bob", "s"): "bob", salt("", "s"): "", saltOf(salt("a:b", "7"), 128): "a:b", saltOf("", 128): ""} {
		if got := tenantOf(salt); got != want {
			t.Errorf("%q: tenant %q, want %q", salt, got, want)
		}
	}
}
