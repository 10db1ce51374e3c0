package llama

import (
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/openai"
	"ridge/server/probs"
	"ridge/server/run"
	"ridge/server/wire"
	"ridge/text/tokenizer"
)

func (s *API) version(w http.ResponseWriter, _ *http.Request) error {
	wire.WriteJSON(w, http.StatusOK, map[string]string{"version": s.Version, "name": "ridge"})
	return nil
}

// load is vLLM's GET /load: requests under way.
func (s *API) load(w http.ResponseWriter, _ *http.Request) error {
	n := 0
	for _, m := range s.Models.Loaded() {
		n += m.Stats().Requests
	}
	wire.WriteJSON(w, http.StatusOK, map[string]int{"server_load": n})
	return nil
}

// query is the model that a GET request names.
func (s *API) query(r *http.Request) (*run.Loan, error) {
	return s.Model(r, r.URL.Query().Get("model"))
}

// props describes a model and what requests get that do not say otherwise.
func (s *API) props(w http.ResponseWriter, r *http.Request) error {
	m, err := s.query(r)
	if err != nil {
		return err
	}
	defer m.Release()
	params := wire.Settings(m.Defaults(wire.Defaults))
	params["n_predict"] = -1
	if n := m.MaxTokens(); n != nil {
		params["n_predict"] = *n
	}
	params["max_tokens"] = params["n_predict"]
	caps := m.Caps()
	wire.WriteJSON(w, http.StatusOK, map[string]any{
		"default_generation_settings": map[string]any{
			"n_ctx":  m.Info().Context,
			"params": params,
		},
		"total_slots": m.Info().Slots, "model_alias": m.Info().Name, "model_path": filepath.Base(m.Info().Path),
		"chat_template": m.Info().Template, "chat_template_caps": map[string]bool{"system": caps.System, "tools": caps.Tools, "tool_calls": caps.ToolCalls},
		"bos_token": m.Piece(m.Tokenizer().BOS()), "eos_token": m.Piece(m.Tokenizer().EOS()), "modalities": map[string]bool{"vision": false, "audio": false},
		"build_info": "ridge " + s.Version, "n_ctx": m.Info().Context, "n_ctx_train": m.Info().Train, "n_vocab": m.Tokenizer().VocabSize(), "tool_call_format": m.Syntax().Name,
	})
	return nil
}

// slots lists the sequences that run, and the places for more of them. Those that
// wait are no slots; GET /ridge/status has them.
func (s *API) slots(w http.ResponseWriter, r *http.Request) error {
	m, err := s.query(r)
	if err != nil {
		return err
	}
	defer m.Release()
	type next struct {
		Has     bool `json:"has_next_token"`
		Remain  int  `json:"n_remain"`
		Decoded int  `json:"n_decoded"`
	}
	type slot struct {
		ID         int     `json:"id"`
		Task       string  `json:"id_task"`
		Context    int     `json:"n_ctx"`
		Processing bool    `json:"is_processing"`
		State      string  `json:"state"`
		Position   int     `json:"position"`
		Prompt     int     `json:"n_prompt_tokens"`
		Computed   int     `json:"n_computed_tokens"`
		Pages      int     `json:"pages"`
		Age        float64 `json:"age_seconds"`
		Next       next    `json:"next_token"`
	}
	out := []slot{}
	for i, q := range m.Stats().Sequences {
		if q.State == "waiting" {
			continue
		}
		out = append(out, slot{i, q.ID, m.Info().Context, q.State == "running", q.State, q.Position, q.Prompt, q.Computed, q.Pages, q.Age.Seconds(),
			next{q.Tokens < q.Max, q.Max - q.Tokens, q.Tokens}})
	}
	busy := len(out)
	for len(out) < m.Info().Slots {
		out = append(out, slot{ID: len(out), Task: "-1", Context: m.Info().Context, State: "idle", Next: next{Remain: -1}})
	}
	if r.URL.Query().Get("fail_on_no_slot") != "" && len(out) == busy {
		return fault.Unavailable(time.Second, "no slot available")
	}
	wire.WriteJSON(w, http.StatusOK, out)
	return nil
}

// resetPrefixes is vLLM's POST /reset_prefix_cache. It is for the one user of a
// server without keys: prefixes are everybody's time.
func (s *API) resetPrefixes(w http.ResponseWriter, r *http.Request) error {
	if caller.Owner(r.Context()) != "" {
		return fault.NotImplemented("POST /reset_prefix_cache is not offered by a server with keys")
	}
	for _, m := range s.Models.Loaded() {
		if e := m.Engine(); e != nil {
			if err := e.ForgetPrefixes(r.Context()); err != nil {
				return err
			}
		}
	}
	w.WriteHeader(http.StatusOK) // vLLM's answer is empty
	return nil
}

// maxPieces bounds the tokens whose texts are listed.
const maxPieces = 1 << 18

// tokenize is llama-server's and vLLM's POST /tokenize at once.
func (s *API) tokenize(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Content       *string `json:"content"` // llama-server
		AddSpecial    bool    `json:"add_special"`
		ParseSpecial  *bool   `json:"parse_special"`
		WithPieces    bool    `json:"with_pieces"`
		Prompt        *string `json:"prompt"` // vLLM
		AddSpecialTok *bool   `json:"add_special_tokens"`
		Strings       bool    `json:"return_token_strs"`
		openai.ChatRequest
	}
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	o := tokenizer.EncodeOptions{AddSpecial: b.AddSpecial, ParseSpecial: b.ParseSpecial == nil || *b.ParseSpecial}
	var ids []int32
	switch {
	case b.Content != nil:
		ids = m.Tokenizer().Encode([]int32{}, *b.Content, o)
	case b.Prompt != nil:
		o.AddSpecial = b.AddSpecialTok == nil || *b.AddSpecialTok
		ids = m.Tokenizer().Encode([]int32{}, *b.Prompt, o)
	case len(b.Messages) > 0:
		p, err := b.ChatRequest.Prompt(r.Context(), m.Model)
		if err != nil {
			return err
		}
		ids = p.Tokens
	default:
		return fault.BadRequest("content", "expected content, prompt or messages, found none")
	}
	if (b.Strings || b.WithPieces) && len(ids) > maxPieces {
		return fault.BadRequest("with_pieces", "expected a text of at most %d tokens, found %d", maxPieces, len(ids))
	}
	reply := map[string]any{"tokens": ids, "count": len(ids), "max_model_len": m.Info().Context}
	if b.Strings {
		strs := []string{}
		for _, id := range ids {
			strs = append(strs, m.TokenText(id))
		}
		reply["token_strs"] = strs
	}
	if b.WithPieces {
		reply["tokens"] = pieces(m.Model, ids)
	}
	wire.WriteJSON(w, http.StatusOK, reply)
	return nil
}

// pieces are tokens with their text, or with their bytes where they are no
// characters.
func pieces(m *run.Model, ids []int32) any {
	type piece struct {
		ID    int32 `json:"id"`
		Piece any   `json:"piece"`
	}
	out := []piece{}
	for _, id := range ids {
		p := m.Tokenizer().Piece(id)
		if utf8.Valid(p) {
			out = append(out, piece{id, string(p)})
			continue
		}
		bytes := make([]int, len(p))
		for i, c := range p {
			bytes[i] = int(c)
		}
		out = append(out, piece{id, bytes})
	}
	return out
}

func (s *API) detokenize(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Model  string  `json:"model"`
		Tokens []int32 `json:"tokens"`
	}
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	text, err := m.Decode("tokens", b.Tokens)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]string{"content": text, "prompt": text})
	return nil
}

// applyTemplate shows the prompt that a conversation becomes.
func (s *API) applyTemplate(w http.ResponseWriter, r *http.Request) error {
	var b openai.ChatRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	p, err := b.Prompt(r.Context(), m.Model)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]string{"prompt": p.Text})
	return nil
}

// tokenizerInfo tells lm-eval what it needs to do without the tokenizer's
// files.
func (s *API) tokenizerInfo(w http.ResponseWriter, r *http.Request) error {
	m, err := s.query(r)
	if err != nil {
		return err
	}
	defer m.Release()
	token := func(id int32) any {
		if id < 0 {
			return nil
		}
		return m.Piece(id)
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{
		"tokenizer_class": m.Tokenizer().Kind(), "bos_token": token(m.Tokenizer().BOS()), "eos_token": token(m.Tokenizer().EOS()), "pad_token": token(m.Tokenizer().EOS()),
		"chat_template": m.Info().Template, "vocab_size": m.Tokenizer().VocabSize(), "model_max_length": m.Info().Context, "add_bos_token": m.Tokenizer().AddsBOS(),
	})
	return nil
}

func (s *API) noAdapters(w http.ResponseWriter, _ *http.Request) error {
	wire.WriteJSON(w, http.StatusOK, []string{})
	return nil
}

// infill is POST /infill: text between a prefix and a suffix.
func (s *API) infill(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Prefix string `json:"input_prefix"`
		Suffix string `json:"input_suffix"`
		Extra  []struct {
			Filename string `json:"filename"`
			Text     string `json:"text"`
		} `json:"input_extra"`
		request
	}
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	prefix := b.Prefix
	if len(b.Prompt) > 0 {
		prefix += b.Prompt[0].Text
	}
	var extra strings.Builder
	for _, x := range b.Extra {
		extra.WriteString(x.Filename + "\n" + x.Text + "\n\n")
	}
	ids, err := m.Fill(extra.String()+prefix, b.Suffix)
	if err != nil {
		return err
	}
	b.Prompt = wire.Prompts{{Tokens: ids}}
	return s.answer(w, r, m.Model, &b.request)
}

// request is the body of llama-server's own POST /completion.
type request struct {
	Prompt       wire.Prompts  `json:"prompt"`
	NProbs       *wire.Integer `json:"n_probs"`
	ReturnTokens bool          `json:"return_tokens"`
	Images       wire.Refused  `json:"image_data"`
	wire.SamplingFields
	openai.Common
	openai.Structured
}

// reply is its answer, and a piece of it in a stream.
type reply struct {
	Index     int           `json:"index"`
	Content   string        `json:"content"`
	Tokens    []int32       `json:"tokens"`
	Stop      bool          `json:"stop"`
	Model     string        `json:"model,omitempty"`
	Predicted int           `json:"tokens_predicted"`
	Evaluated int           `json:"tokens_evaluated"`
	StopType  string        `json:"stop_type,omitempty"`
	StopWord  string        `json:"stopping_word"`
	Truncated bool          `json:"truncated"`
	Timings   *wire.Timings `json:"timings,omitempty"`
	Probs     []tokenProb   `json:"completion_probabilities,omitempty"`
	// In the last piece only.
	Settings map[string]any `json:"generation_settings,omitempty"`
}

func (s *API) completion(w http.ResponseWriter, r *http.Request) error {
	var b request
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	return s.answer(w, r, m.Model, &b)
}

func (s *API) answer(w http.ResponseWriter, r *http.Request, m *run.Model, b *request) error {
	c := &run.Completion{Prompts: b.Prompt, Sampling: b.Sampling(), Defaults: wire.Defaults, Options: b.Options()}
	var err error
	if c.Format, err = b.Structured.Format(); err == nil && len(b.Prompt) != 1 {
		err = fault.BadRequest("prompt", "expected one prompt, found %d", len(b.Prompt))
	}
	if err == nil && b.N.Value(1) != 1 {
		err = fault.BadRequest("n", "expected 1, found %d", b.N.Value(1))
	}
	c.Top = b.NProbs.Value(0)
	if c.Probs = c.Top > 0; err == nil && (c.Top < 0 || c.Top > run.MaxTopProbs) {
		err = fault.BadRequest("n_probs", "expected 0 to %d, found %d", run.MaxTopProbs, c.Top)
	}
	var plans []*run.Plan
	if err == nil {
		plans, err = c.Plans(r.Context(), m)
	}
	if err != nil {
		return err
	}
	wire.NoteUnenforced(w, r, plans[0])
	var t run.Totals
	var a run.Answer
	e := s.Events(w, r)
	var live *wire.Events
	if b.Stream {
		live = e
	}
	each := func(d *run.Delta) error {
		a.Add(d)
		if !b.Stream {
			return nil
		}
		rep := &reply{Content: d.Text(), Tokens: wire.IDs(d.Tokens), Model: m.Info().Name}
		if c.Probs && len(d.Tokens) > 0 {
			rep.Probs = newProbs(m, d.Tokens)
		}
		return e.Data(rep)
	}
	if err := s.Run(r.Context(), plans[0], &t, each, s.Wait(live, m)); err != nil {
		return openai.StreamError(e, r, err)
	}
	rep := &reply{Stop: true, Tokens: []int32{}, Model: m.Info().Name, Predicted: t.Tokens, Evaluated: t.Prompt, StopWord: a.StopText, StopType: "eos", Truncated: t.Truncated > 0, Timings: wire.NewTimings(&t), Settings: settings(plans[0], b)}
	switch {
	case a.Finish == run.FinishLength:
		rep.StopType = "limit"
	case a.StopText != "":
		rep.StopType = "word"
	}
	if b.Stream {
		_ = e.Data(rep) // a client that is gone is noticed by others
		return nil
	}
	if rep.Content = a.Text.String(); b.ReturnTokens {
		rep.Tokens = wire.IDs(a.Tokens)
	}
	if c.Probs {
		rep.Probs = newProbs(m, a.Tokens)
	}
	wire.WriteJSON(w, http.StatusOK, rep)
	return nil
}

// settings are how an answer was made, with llama-server's names.
func settings(p *run.Plan, b *request) map[string]any {
	o := wire.Settings(p.Sampling)
	n := p.Request.MaxTokens
	if n == 0 {
		n = -1 // as many as fit
	}
	biases := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(p.Request.Sampling.LogitBias)) {
		biases = append(biases, map[string]any{"token": id, "bias": max(-math.MaxFloat32, p.Request.Sampling.LogitBias[id])})
	}
	maps.Copy(o, map[string]any{
		"n_predict": n, "max_tokens": n, "stop": append([]string{}, b.Stop...), "ignore_eos": p.Request.IgnoreEOS, "stream": b.Stream, "n_probs": b.NProbs.Value(0), "logit_bias": biases,
	})
	return o
}

// topToken is a token among llama-server's log-probabilities, which have its id.
type topToken struct {
	ID int32 `json:"id"`
	probs.Entry
}

type tokenProb struct {
	topToken
	Top []topToken `json:"top_logprobs"`
}

// newProbs are the log-probabilities of some tokens.
func newProbs(m *run.Model, tokens []run.Token) []tokenProb {
	out := make([]tokenProb, len(tokens))
	for i, t := range tokens {
		out[i] = tokenProb{topToken{t.ID, probs.NewEntry(m, t.ID, t.Prob)}, []topToken{}}
		for _, o := range t.Top {
			out[i].Top = append(out[i].Top, topToken{o.Token, probs.NewEntry(m, o.Token, o.LogProb)})
		}
	}
	return out
}

// rawEmbedding is llama-server's POST /embedding.
func (s *API) rawEmbedding(w http.ResponseWriter, r *http.Request) error {
	var b wire.EmbeddingRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	var t run.Totals
	vectors, err := s.Embed(r.Context(), m.Model, b.Embedding(), &t)
	if err != nil {
		return err
	}
	type item struct {
		Index     int         `json:"index"`
		Embedding [][]float32 `json:"embedding"`
	}
	out := []item{}
	for i, v := range vectors {
		out = append(out, item{i, [][]float32{v}})
	}
	wire.WriteJSON(w, http.StatusOK, out)
	return nil
}
