package watch

import (
	"context"
	"net/http"
	"time"
	"unicode/utf8"

	"ridge/engine"
	"ridge/kvcache"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/wire"
)

// Pages is the answer of GET /ridge/kv: what each page of a model's keys and values is
// used for. Lists without another remark have an entry for each page.
type Pages struct {
	Model      string     `json:"model"`
	PageTokens int        `json:"page_tokens"`
	PageBytes  int64      `json:"page_bytes"`
	Pages      int        `json:"pages"`
	Windows    []int      `json:"group_windows"` // of each group of layers, in tokens; 0 for all
	State      string     `json:"state"`         // a letter for each page: f free, u used, s shared, r recurrent state, c cached only, p pinned
	Owner      []int32    `json:"owner"`         // index of the first of the sequences that hold it, -1 for none
	Owners     []int32    `json:"owners"`        // how many hold it
	Tokens     []int32    `json:"tokens"`        // slots filled
	Age        []int32    `json:"age"`           // seconds since its last use
	Sequences  []PageSeq  `json:"sequences"`     // that hold pages
	Swapped    int        `json:"swapped"`       // sequences that were written out and hold none
	Tree       []TreeNode `json:"tree"`          // of the prefix cache, the most used runs of tokens, each after what leads to it
}

// PageSeq is a sequence that holds pages.
type PageSeq struct {
	ID     string `json:"id"`
	Choice int    `json:"choice"`
	Tenant string `json:"tenant"`
	Tokens int    `json:"tokens"` // computed
	Pages  int    `json:"pages"`
}

// TreeNode is a run of tokens in the prefix cache.
type TreeNode struct {
	Node   int32   `json:"node"`
	Parent int32   `json:"parent"` // -1 for none
	Tokens int     `json:"tokens"`
	Start  int     `json:"start"`        // tokens before it
	Users  int     `json:"users"`        // sequences that hold pages of it
	Hits   int64   `json:"hits"`         // how often it, or its beginning, was found
	Saved  int64   `json:"saved_tokens"` // tokens of it that did not have to be computed therefore
	Pinned bool    `json:"pinned"`
	Age    float64 `json:"age"`            // seconds since its last use
	Text   string  `json:"text,omitempty"` // its beginning, with --log-prompts
}

const (
	mostNodes  = 500
	nodeText   = 80 // bytes
	kvPatience = 2 * time.Second
)

// kv answers GET /ridge/kv.
func (s *API) kv(w http.ResponseWriter, r *http.Request) error {
	m, err := s.model(r)
	if err != nil {
		return err
	}
	e := m.Engine()
	if e == nil {
		return fault.NotImplemented("this model has no pages of keys and values")
	}
	ctx, cancel := context.WithTimeout(r.Context(), kvPatience)
	defer cancel()
	head := 0
	if s.LogPrompts {
		head = nodeText
	}
	p, seqs, err := e.PageMap(ctx, mostNodes, head)
	if err != nil {
		return fault.Unavailable(time.Second, "the step at hand takes long: %v", err)
	}
	out := pagesFor(r.Context(), p, seqs)
	out.Model, out.Swapped = m.Info().Name, e.Stats().Sched.Swapped
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if !caller.Sees(r.Context(), n.Salt) {
			continue
		}
		x := TreeNode{Node: n.Node, Parent: n.Parent, Tokens: n.Tokens, Start: n.Start, Users: n.Users, Hits: n.Hits, Saved: n.Saved, Pinned: n.Pinned, Age: n.Age.Seconds()}
		if len(n.Head) > 0 {
			x.Text = beginning(m.Tokenizer().DecodeSpecial(n.Head))
		}
		out.Tree = append(out.Tree, x)
	}
	wire.WriteJSON(w, http.StatusOK, out)
	return nil
}

// pagesFor is what the caller of a request may know of pages, but for the prefix tree.
func pagesFor(ctx context.Context, p *kvcache.Map, seqs []engine.SequenceStats) *Pages {
	state := make([]byte, len(p.Use))
	for i, u := range p.Use {
		state[i] = byte(u)
	}
	out := &Pages{PageTokens: p.PageTokens, PageBytes: p.PageBytes, Pages: len(p.Use), Windows: p.Windows, State: string(state), Owner: p.Owner, Owners: p.Owners,
		Tokens: p.Tokens, Age: p.Age, Sequences: []PageSeq{}, Tree: []TreeNode{}}
	for i := range seqs {
		q := &seqs[i]
		id, tenant := caller.Shown(ctx, q.Tenant, q.ID)
		out.Sequences = append(out.Sequences, PageSeq{id, q.Choice, tenant, q.Computed, q.Pages})
	}
	return out
}

// beginning is the beginning of a text, whole characters of at most nodeText bytes.
func beginning(text string) string {
	if len(text) <= nodeText {
		return text
	}
	n := nodeText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
