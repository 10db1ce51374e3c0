package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"ridge/engine"
	"ridge/model"
	"ridge/text/chat"
	"ridge/text/tokenizer"
)

// health is liveness and readiness in one, as llama-server has it.
func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	if err := s.notReady(); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// live says that the process answers and its engines do steps.
func (s *Server) live(w http.ResponseWriter, r *http.Request) error {
	for _, m := range s.lib.loaded() {
		if err := m.sick(); err != nil && !s.draining.Load() {
			return unavailable(0, "%s: %v", m.name, err)
		}
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// ready says whether requests should be sent here.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error { return s.health(w, r) }

func (s *Server) notReady() error {
	if s.draining.Load() {
		return unavailable(5*time.Second, "the server is shutting down")
	}
	for _, m := range s.lib.loaded() {
		if err := m.sick(); err != nil {
			return unavailable(5*time.Second, "%s: %v", m.name, err)
		}
	}
	return nil
}

// sick says what is wrong with a model. One that was loaded on demand and is
// being unloaded, or whose file was changed, is well: who asks for it gets it
// loaded again.
func (m *Model) sick() error {
	err := m.backend.Healthy()
	if m.close == nil && (errors.Is(err, engine.ErrClosed) || errors.Is(err, model.ErrChanged)) {
		return nil
	}
	return err
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]string{"version": s.o.Version, "name": "ridge"})
	return nil
}

// loadRoute is vLLM's GET /load: requests under way.
func (s *Server) loadRoute(w http.ResponseWriter, _ *http.Request) error {
	n := 0
	for _, m := range s.lib.loaded() {
		n += m.backend.Stats().Requests
	}
	writeJSON(w, http.StatusOK, map[string]int{"server_load": n})
	return nil
}

// query is the model that a GET request names.
func (s *Server) query(r *http.Request) (*loan, error) {
	return s.model(r, r.URL.Query().Get("model"))
}

// props describes a model and what requests get that do not say otherwise.
func (s *Server) props(w http.ResponseWriter, r *http.Request) error {
	m, err := s.query(r)
	if err != nil {
		return err
	}
	defer m.release()
	d := m.defaults.or(openAIDefaults)
	number := func(v *float64, def float64) float64 {
		if v == nil {
			return def
		}
		return *v
	}
	k := 0
	if d.TopK != nil {
		k = *d.TopK
	}
	caps := m.tmpl.Caps()
	writeJSON(w, http.StatusOK, map[string]any{
		"default_generation_settings": map[string]any{
			"n_ctx": m.context,
			"params": map[string]any{
				"temperature": number(d.Temperature, 0), "top_k": k, "top_p": number(d.TopP, 1), "min_p": number(d.MinP, 0), "typical_p": number(d.TypicalP, 1),
				"repeat_penalty": number(d.RepetitionPenalty, 1), "presence_penalty": number(d.PresencePenalty, 0), "frequency_penalty": number(d.FrequencyPenalty, 0), "n_predict": -1,
			},
		},
		"total_slots": m.backend.Stats().Usage.Slots / max(1, m.context), "model_alias": m.name, "model_path": m.path,
		"chat_template": m.source, "chat_template_caps": map[string]bool{"system": caps.System, "tools": caps.Tools, "tool_calls": caps.ToolCalls},
		"bos_token": m.piece(m.tok.BOS()), "eos_token": m.piece(m.tok.EOS()), "modalities": map[string]bool{"vision": false, "audio": false},
		"build_info": "ridge " + s.o.Version, "n_ctx": m.context, "n_ctx_train": m.info.Train, "n_vocab": m.tok.VocabSize(), "tool_call_format": m.syntax.Name,
	})
	return nil
}

// slots lists the sequences, running and waiting.
func (s *Server) slots(w http.ResponseWriter, r *http.Request) error {
	m, err := s.query(r)
	if err != nil {
		return err
	}
	defer m.release()
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
	for i, q := range m.backend.Stats().Sequences {
		out = append(out, slot{i, q.ID, m.context, q.State == "running", q.State, q.Position, q.Prompt, q.Computed, q.Pages, q.Age.Seconds(),
			next{q.Tokens < q.Max, q.Max - q.Tokens, q.Tokens}})
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// tokenize is llama-server's and vLLM's POST /tokenize at once.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Content       *string `json:"content"` // llama-server
		AddSpecial    bool    `json:"add_special"`
		ParseSpecial  *bool   `json:"parse_special"`
		WithPieces    bool    `json:"with_pieces"`
		Prompt        *string `json:"prompt"` // vLLM
		AddSpecialTok *bool   `json:"add_special_tokens"`
		Strings       bool    `json:"return_token_strs"`
		openAIChat
	}
	m, err := s.lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	o := tokenizer.EncodeOptions{AddSpecial: b.AddSpecial, ParseSpecial: b.ParseSpecial == nil || *b.ParseSpecial}
	var ids []int32
	switch {
	case b.Content != nil:
		ids = m.tok.Encode([]int32{}, *b.Content, o)
	case b.Prompt != nil:
		o.AddSpecial = b.AddSpecialTok == nil || *b.AddSpecialTok
		ids = m.tok.Encode([]int32{}, *b.Prompt, o)
	case len(b.Messages) > 0:
		p, err := s.renderChat(m.Model, &b.openAIChat)
		if err != nil {
			return err
		}
		ids = p.Tokens
	default:
		return badRequest("content", "expected content, prompt or messages, found none")
	}
	reply := map[string]any{"tokens": ids, "count": len(ids), "max_model_len": m.context}
	if b.Strings {
		strs := []string{}
		for _, id := range ids {
			strs = append(strs, m.tokenText(id))
		}
		reply["token_strs"] = strs
	}
	if b.WithPieces {
		reply["tokens"] = m.pieces(ids)
	}
	writeJSON(w, http.StatusOK, reply)
	return nil
}

// pieces are tokens with their text, or with their bytes where they are no
// characters.
func (m *Model) pieces(ids []int32) any {
	type piece struct {
		ID    int32 `json:"id"`
		Piece any   `json:"piece"`
	}
	out := []piece{}
	for _, id := range ids {
		p := m.tok.Piece(id)
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

// renderChat is the prompt of a chat completion.
func (s *Server) renderChat(m *Model, b *openAIChat) (chat.Prompt, error) {
	c, err := b.request()
	if err != nil {
		return chat.Prompt{}, err
	}
	tools, err := c.choice.choose(c.tools)
	if err != nil {
		return chat.Prompt{}, err
	}
	return c.prompt(m, tools)
}

func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Model  string  `json:"model"`
		Tokens []int32 `json:"tokens"`
	}
	m, err := s.lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	if err := m.checkIDs("tokens", b.Tokens); err != nil {
		return err
	}
	text := m.tok.DecodeSpecial(b.Tokens)
	writeJSON(w, http.StatusOK, map[string]string{"content": text, "prompt": text})
	return nil
}

// applyTemplate shows the prompt that a conversation becomes.
func (s *Server) applyTemplate(w http.ResponseWriter, r *http.Request) error {
	var b openAIChat
	m, err := s.lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	p, err := s.renderChat(m.Model, &b)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]string{"prompt": p.Text})
	return nil
}

// tokenizerInfo tells lm-eval what it needs to do without the tokenizer's
// files.
func (s *Server) tokenizerInfo(w http.ResponseWriter, r *http.Request) error {
	m, err := s.query(r)
	if err != nil {
		return err
	}
	defer m.release()
	token := func(id int32) any {
		if id < 0 {
			return nil
		}
		return m.piece(id)
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"tokenizer_class": m.tok.Kind(), "bos_token": token(m.tok.BOS()), "eos_token": token(m.tok.EOS()), "pad_token": token(m.tok.EOS()),
		"chat_template": m.source, "vocab_size": m.tok.VocabSize(), "model_max_length": m.context, "add_bos_token": m.tok.AddsBOS(),
	})
	return nil
}

func (s *Server) noAdapters(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, []string{})
	return nil
}

// infill is POST /infill: text between a prefix and a suffix.
func (s *Server) infill(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Prefix string `json:"input_prefix"`
		Suffix string `json:"input_suffix"`
		Extra  []struct {
			Filename string `json:"filename"`
			Text     string `json:"text"`
		} `json:"input_extra"`
		llamaRequest
	}
	m, err := s.lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	prefix := b.Prefix
	if len(b.Prompt) > 0 {
		prefix += b.Prompt[0].text
	}
	var extra strings.Builder
	for _, x := range b.Extra {
		extra.WriteString(x.Filename + "\n" + x.Text + "\n\n")
	}
	ids, err := m.fill(extra.String()+prefix, b.Suffix)
	if err != nil {
		return err
	}
	b.Prompt = prompts{{tokens: ids}}
	return s.llamaAnswer(w, r, m.Model, &b.llamaRequest)
}

// llamaRequest is the body of llama-server's own POST /completion.
type llamaRequest struct {
	Prompt       prompts         `json:"prompt"`
	NProbs       *integer        `json:"n_probs"`
	ReturnTokens bool            `json:"return_tokens"`
	Images       json.RawMessage `json:"image_data"`
	sampling
	common
	structured
}

// llamaReply is its answer, and a piece of it in a stream.
type llamaReply struct {
	Index     int         `json:"index"`
	Content   string      `json:"content"`
	Tokens    []int32     `json:"tokens"`
	Stop      bool        `json:"stop"`
	Model     string      `json:"model,omitempty"`
	Predicted int         `json:"tokens_predicted"`
	Evaluated int         `json:"tokens_evaluated"`
	StopType  string      `json:"stop_type,omitempty"`
	StopWord  string      `json:"stopping_word"`
	Truncated bool        `json:"truncated"`
	Timings   *timings    `json:"timings,omitempty"`
	Probs     []llamaProb `json:"completion_probabilities,omitempty"`
}

func (s *Server) llamaCompletion(w http.ResponseWriter, r *http.Request) error {
	var b llamaRequest
	m, err := s.lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	return s.llamaAnswer(w, r, m.Model, &b)
}

func (s *Server) llamaAnswer(w http.ResponseWriter, r *http.Request, m *Model, b *llamaRequest) error {
	c := &completionRequest{prompts: b.Prompt, sampling: b.sampling, defaults: openAIDefaults, common: b.common}
	var err error
	if c.format, err = b.structured.format(); err == nil && len(b.Prompt) != 1 {
		err = badRequest("prompt", "expected one prompt, found %d", len(b.Prompt))
	}
	if err == nil && b.N.value(1) != 1 {
		err = badRequest("n", "expected 1, found %d", b.N.value(1))
	}
	c.top = b.NProbs.value(0)
	if c.probs = c.top > 0; err == nil && (c.top < 0 || c.top > maxTopProbs) {
		err = badRequest("n_probs", "expected 0 to %d, found %d", maxTopProbs, c.top)
	}
	var plans []*plan
	if err == nil {
		plans, err = c.plans(m)
	}
	if err != nil {
		return err
	}
	var t totals
	var a answer
	e := s.newEvents(w, r)
	each := func(d *delta) error {
		a.add(d)
		if !b.Stream {
			return nil
		}
		rep := &llamaReply{Content: d.text(), Tokens: ids(d.tokens), Model: m.name}
		if c.probs && len(d.tokens) > 0 {
			rep.Probs = m.llamaProbs(d.tokens)
		}
		return e.data(rep)
	}
	if err := s.run(r.Context(), plans[0], &t, each, s.waitFor(b.Stream, e, r, m)); err != nil {
		return s.streamError(e, r, err)
	}
	rep := &llamaReply{Stop: true, Tokens: []int32{}, Model: m.name, Predicted: t.tokens, Evaluated: t.prompt, StopWord: a.stopText, StopType: "eos", Timings: t.timings()}
	switch {
	case a.finish == finishLength:
		rep.StopType = "limit"
	case a.stopText != "":
		rep.StopType = "word"
	}
	if b.Stream {
		_ = e.data(rep) // a client that is gone is noticed by others
		return nil
	}
	if rep.Content = a.text.String(); b.ReturnTokens {
		rep.Tokens = ids(a.tokens)
	}
	if c.probs {
		rep.Probs = m.llamaProbs(a.tokens)
	}
	writeJSON(w, http.StatusOK, rep)
	return nil
}

// llamaTop is a token among llama-server's log-probabilities, which have its id.
type llamaTop struct {
	ID int32 `json:"id"`
	topProb
}

type llamaProb struct {
	llamaTop
	Top []llamaTop `json:"top_logprobs"`
}

// llamaProbs are the log-probabilities of some tokens.
func (m *Model) llamaProbs(tokens []tokenInfo) []llamaProb {
	out := make([]llamaProb, len(tokens))
	for i, t := range tokens {
		out[i] = llamaProb{llamaTop{t.id, m.topProb(t.id, t.prob)}, []llamaTop{}}
		for _, o := range t.top {
			out[i].Top = append(out[i].Top, llamaTop{o.Token, m.topProb(o.Token, o.LogProb)})
		}
	}
	return out
}

// waitFor is what to do while nothing comes: a sign of life in streams.
func (s *Server) waitFor(streams bool, e *events, r *http.Request, m *Model) func() error {
	if !streams {
		return nil
	}
	return func() error { return s.alive(e, r, m) }
}
