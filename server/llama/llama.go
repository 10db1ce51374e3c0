package llama

import (
	"net/http"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/openai"
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
		id, _ := caller.Shown(r.Context(), q.Tenant, q.ID)
		out = append(out, slot{i, id, m.Info().Context, q.State == "running", q.State, q.Position, q.Prompt, q.Computed, q.Pages, q.Age.Seconds(),
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

// tokenizeRequest is the body of llama-server's and of vLLM's POST /tokenize.
type tokenizeRequest struct {
	Content       *string `json:"content"` // llama-server
	AddSpecial    bool    `json:"add_special"`
	ParseSpecial  *bool   `json:"parse_special"`
	WithPieces    bool    `json:"with_pieces"`
	Prompt        *string `json:"prompt"` // vLLM
	AddSpecialTok *bool   `json:"add_special_tokens"`
	Strings       bool    `json:"return_token_strs"`
	openai.ChatRequest
}

// tokenize is POST /tokenize.
func (s *API) tokenize(w http.ResponseWriter, r *http.Request) error {
	var b tokenizeRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	o := tokenizer.EncodeOptions{AddSpecial: b.AddSpecial, ParseSpecial: b.ParseSpecial == nil || *b.ParseSpecial}
	for name, text := range map[string]*string{"content": b.Content, "prompt": b.Prompt} {
		if text != nil && len(*text) > run.MaxText {
			return fault.BadRequest(name, "expected a text of at most %d bytes, found %d", run.MaxText, len(*text))
		}
	}
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

// detokenizeRequest is the body of POST /detokenize.
type detokenizeRequest struct {
	Model  string  `json:"model"`
	Tokens []int32 `json:"tokens"`
}

func (s *API) detokenize(w http.ResponseWriter, r *http.Request) error {
	var b detokenizeRequest
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

// infillRequest is the body of POST /infill.
type infillRequest struct {
	Prefix string `json:"input_prefix"`
	Suffix string `json:"input_suffix"`
	Extra  []struct {
		Filename string `json:"filename"`
		Text     string `json:"text"`
	} `json:"input_extra"`
	request
}

// infill is POST /infill: text between a prefix and a suffix.
func (s *API) infill(w http.ResponseWriter, r *http.Request) error {
	var b infillRequest
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
