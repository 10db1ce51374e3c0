package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"ridge/engine"
	"ridge/model"
	"ridge/sample"
	"ridge/server/adapters"
	"ridge/text/chat"
	"ridge/text/constraint"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// Backend is what is needed of an engine.
type Backend interface {
	Submit(ctx context.Context, r engine.Request) (Stream, error)
	Stats() engine.Stats
	Drain(ctx context.Context) error
	Healthy() error
	Close() error
}

// Stream is what is needed of a stream of events.
type Stream interface {
	Next(ctx context.Context) (engine.Event, bool)
	Stop(choice int)
	Close()
}

// engineBackend is an engine as a backend.
type engineBackend struct{ *engine.Engine }

func (b engineBackend) Submit(ctx context.Context, r engine.Request) (Stream, error) {
	s, err := b.Engine.Submit(ctx, r)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ModelConfig says which model is served, and how.
type ModelConfig struct {
	Name    string   // as clients name it
	Aliases []string // other names for it
	Path    string   // of the file or directory, for what is shown of it
	Engine  *engine.Engine
	// Template is a chat template to use in place of the model's own.
	Template string
	// Reasoning names the tags of reasoning, such as "think", for models whose
	// template does not show them; "none" leaves all reasoning in the text.
	Reasoning string
	// TrustMarks makes control tokens of their texts in messages too, see
	// chat.Options.
	TrustMarks bool
	// Omit are regular expressions for lines of system messages that are no text for
	// the model and left out, beside Claude Code's x-anthropic-billing-header; "none"
	// forgets those before it.
	Omit []string
	// JumpAhead is what requests for structured output get that do not say
	// whether forced text is drawn, see jump_ahead in docs/grammars.md.
	JumpAhead bool
	// EndLoops is what requests get that do not say whether an answer ends that
	// only repeats itself, see engine.Request; nil: it does if they set no limit of
	// tokens, or one of 8192 and more.
	EndLoops *bool
	// What requests get that do not say otherwise, before what the file recommends:
	// sampling, tokens of an answer (nil: as many as fit), the system message of
	// conversations that have none, variables of the template.
	Sampling     Sampling
	MaxTokens    *int
	System       string
	TemplateArgs map[string]any
	Digest       string    // sha256 of the file in hexadecimal, "" if unknown
	Size         int64     // bytes of its files
	Modified     time.Time // of its files
	Quant        string    // name of its quantization, "" if unknown
}

// Model is a model that is loaded and can answer.
type Model struct {
	info     Info
	backend  Backend
	tok      *tokenizer.Tokenizer
	tmpl     *chat.Template
	foreign  bool           // a client brought the template
	ownTmpl  bool           // the template came with the model or from the user
	pair     *chat.Template // of a reranker that reads two texts as a template has them, nil for none
	syntax   chat.Syntax
	defaults Sampling
	ends     []int32        // tokens that end an answer
	marks    map[int32]bool // control tokens that a parser wants to see

	// Of a derived model: whose files it has, the system message and the messages
	// before each conversation, what ends answers and how long they are at most.
	base      *Model
	system    string
	before    []chat.Message
	stops     []string
	maxTokens *int
	args      map[string]any // of the template
	omit      *omission      // of system messages

	adapters *adapters.Set  // of the server, nil: there are none
	own      []adapters.Use // those that m has and its base has not

	loadTime atomic.Int64 // nanoseconds
	close    func() error

	slots     *slots               // shared with derived models
	templates *templates           // of clients, nil: there are none
	hold      *constraint.Compiler // of formats and tools that answers are held to
}

// Info is what is shown of a model.
type Info struct {
	Name       string   // as clients name it
	Aliases    []string // other names for it
	Path       string   // of its file or directory
	Created    time.Time
	Context    int    // tokens that a sequence may have
	Template   string // source of the chat template
	Arch       string
	Parameters int64
	Hidden     int
	Train      int // context that it was made for
	Quant      string
	Digest     string // sha256 of the file, or a name for it that changes when it does
	Size       int64  // bytes of its files
	Modified   time.Time
	License    string
	PageTokens int
	KV         string    // element type of keys and values
	Act        model.Act // activations that quantized matrices read
	Lossy      string    // what changes answers and was asked for, by name; "" if nothing
	Pages      int
	Slots      int // sequences that can run at one time
	Workers    int
	Pooling    engine.Pooling // how states become an embedding, as the file says
	ReadsOnly  bool           // an encoder or a classifier: it reads texts and writes none
	NoPooling  string         // name of a pooling that the file says and that cannot be computed
	EndLoops   *bool          // which answers end that only repeat themselves, unless a request says otherwise
	JumpAhead  bool           // forced text is not drawn unless a request says otherwise
	TrustMarks bool           // the texts of control tokens in messages are control tokens
	// Labels are those of a classifier, whose scores are all that the model gives of
	// texts; nil for a model without. RawScore says that its only score is meant as it
	// is, and not behind a sigmoid.
	Labels   []string
	RawScore bool
	// Prompts are what the model wants before texts, by what these are for; Prompt
	// names the one for texts of which nothing is said.
	Prompts map[string]string
	Prompt  string
	Meta    func() map[string]any // metadata of the file, nil if it has none
}

// NewModel makes a model out of an engine. A server that it is given to owns
// the engine and the engine's model from then on.
func NewModel(c ModelConfig) (*Model, error) {
	mm := c.Engine.Model()
	if mm.Tokenizer() == nil {
		return nil, fmt.Errorf("server: %s: tokenizer: expected one in the file or beside it, found none", c.Path)
	}
	info := Info{
		Name: c.Name, Aliases: c.Aliases, Path: c.Path, Context: mm.Context(), Created: time.Now(),
		Arch: mm.Config().Arch, Parameters: mm.Parameters(), Hidden: mm.EmbeddingSize(), Train: mm.Config().Context, Workers: mm.Workers(),
		Quant: mm.FileType(), PageTokens: mm.Pool().PageTokens(), KV: mm.Pool().DType().String(), Act: mm.Act(), Pages: c.Engine.Pages(), Slots: c.Engine.Slots(),
	}
	info.Labels = labels(mm)
	info.ReadsOnly = mm.Config().Encoder.Both || info.Labels != nil
	m := bare(engineBackend{c.Engine}, mm.Tokenizer(), info)
	m.close = func() error {
		err := c.Engine.Close()
		if e := mm.Close(); err == nil {
			err = e
		}
		return err
	}
	if kv := m.info.KV; kv != "F16" && kv != "F32" {
		m.info.Lossy = "kv-" + strings.ToLower(kv)
	}
	m.info.TrustMarks = c.TrustMarks
	m.info.EndLoops = c.EndLoops
	if m.info.JumpAhead = c.JumpAhead; m.info.JumpAhead {
		m.info.Lossy = strings.TrimPrefix(m.info.Lossy+"+jump-ahead", "+")
	}
	if err := m.describe(&c, mm.ChatTemplate(), mm.Defaults(), mm.GGUF()); err != nil {
		return nil, err
	}
	return m, nil
}

// ModelOf makes a model of any backend, with a chat template.
func ModelOf(b Backend, tok *tokenizer.Tokenizer, info Info, template string) (*Model, error) {
	m := bare(b, tok, info)
	return m, m.setTemplate(template, "", chat.Limits{})
}

// bare is a model without a template.
func bare(b Backend, tok *tokenizer.Tokenizer, info Info) *Model {
	return &Model{info: info, backend: b, tok: tok, slots: &slots{}}
}

// Info is what is shown of m. It must not be changed.
func (m *Model) Info() *Info { return &m.info }

// Tokenizer is m's.
func (m *Model) Tokenizer() *tokenizer.Tokenizer { return m.tok }

// Caps says what m's chat template has a place for.
func (m *Model) Caps() chat.Caps { return m.tmpl.Caps() }

// Syntax says how m writes reasoning and calls.
func (m *Model) Syntax() *chat.Syntax { return &m.syntax }

// Defaults is what a request gets that says nothing, in an API with defaults of
// its own.
func (m *Model) Defaults(api Sampling) Sampling { return m.defaults.Or(api) }

// MaxTokens is what an answer has at most to a request that does not say, nil for as
// many as fit.
func (m *Model) MaxTokens() *int { return m.maxTokens }

// Base is the model whose files m has, if m is derived, else nil.
func (m *Model) Base() *Model { return m.base }

// Root is the model that has files under m: m itself, or what it is derived from.
func (m *Model) Root() *Model {
	for m.base != nil {
		m = m.base
	}
	return m
}

// Stats are the engine's numbers.
func (m *Model) Stats() engine.Stats { return m.backend.Stats() }

// LoadTime is how long loading took, 0 if that is not known.
func (m *Model) LoadTime() time.Duration { return time.Duration(m.loadTime.Load()) }

// Close closes the engine and the model that m was made of, if m owns them.
func (m *Model) Close() error {
	if m.close == nil {
		return nil
	}
	return m.close()
}

// Sick says what is wrong with m. A model that was loaded on demand and is being
// unloaded, or whose file was changed, is well: who asks for it gets it loaded
// again.
func (m *Model) Sick() error {
	err := m.backend.Healthy()
	if m.close == nil && (errors.Is(err, engine.ErrClosed) || errors.Is(err, model.ErrChanged)) {
		return nil
	}
	return err
}

// describe fills in what c and the file say of m, whether or not it is loaded.
func (m *Model) describe(c *ModelConfig, template string, d *model.Defaults, f *gguf.File) error {
	source := cmp.Or(c.Template, template)
	m.ownTmpl = source != ""
	if !m.ownTmpl {
		source = chat.FormOf(m.info.Arch, d.Name, m.tok).Source
	}
	if err := m.setTemplate(source, c.Reasoning, chat.Limits{}); err != nil {
		return err
	}
	if err := m.setPair(d); err != nil {
		return err
	}
	m.info.Quant, m.info.Digest, m.info.Size, m.info.Modified = cmp.Or(c.Quant, m.info.Quant), c.Digest, c.Size, c.Modified
	if err := m.setDefaults(d); err != nil {
		return err
	}
	m.defaults = c.Sampling.Or(m.defaults)
	m.maxTokens, m.system, m.args = c.MaxTokens, c.System, c.TemplateArgs
	var err error
	if m.omit, err = newOmission(c.Omit); err != nil {
		return fmt.Errorf("server: omit: %w", err)
	}
	m.readMeta(f)
	// What was known of the file holds as long as nobody has written to it.
	size, modified := sizeOf(c.Path)
	if changed := c.Digest != "" && size > 0 && (size != c.Size || !modified.Equal(c.Modified)); changed {
		m.info.Digest, m.info.Size = "", 0
	}
	if m.info.Size == 0 {
		m.info.Size, m.info.Modified = size, modified
	}
	if m.info.Digest == "" {
		// A name for the file that changes when the file does.
		h := sha256.Sum256([]byte(fmt.Sprint(c.Path, m.info.Size, m.info.Modified.UnixNano())))
		m.info.Digest = hex.EncodeToString(h[:])
	}
	return nil
}

// Engine is the engine behind m, nil if there is none.
func (m *Model) Engine() *engine.Engine {
	b, _ := m.backend.(engineBackend)
	return b.Engine
}

func (m *Model) setLoadTime(d time.Duration) { m.loadTime.Store(int64(d)) }

// setTemplate compiles the template and what follows from it.
func (m *Model) setTemplate(source, reasoning string, l chat.Limits) error {
	var err error
	m.info.Template = source
	if m.tmpl, err = m.compile(filepath.Base(m.info.Path), source, l); err != nil {
		return err
	}
	m.syntax = chat.SyntaxOf(source).WithReasoning(reasoning)
	m.marks, m.ends = m.syntax.MarkTokens(m.tok), m.syntax.EndTokens(m.tok)
	m.hold = constraint.NewCompiler(m.tok, m.syntax, m.ends)
	return nil
}

// compile compiles a template that name calls so.
func (m *Model) compile(name, source string, l chat.Limits) (*chat.Template, error) {
	o := chat.OptionsFor(name, m.tok)
	o.Limits = l
	o.TrustMarks = m.info.TrustMarks
	return chat.Compile(source, o)
}

// Piece is the text of a special token, "" for none.
func (m *Model) Piece(id int32) string {
	if id < 0 {
		return ""
	}
	return string(m.tok.Piece(id))
}

// Warm makes ready what the first constrained request would have to wait for.
func (m *Model) Warm() { m.hold.Warm() }

// Named reports whether clients may mean m by name. Ollama's clients add a tag.
func (m *Model) Named(name string) bool {
	same := func(a string) bool {
		return strings.EqualFold(a, name) || strings.EqualFold(a, strings.TrimSuffix(name, ":latest"))
	}
	return same(m.info.Name) || slices.ContainsFunc(m.info.Aliases, same)
}

// setDefaults takes over what a model's files recommend.
func (m *Model) setDefaults(d *model.Defaults) error {
	switch d.Pooling {
	case model.PoolingUnsaid:
	case model.PoolingMean:
		m.info.Pooling = engine.PoolingMean
	case model.PoolingLast:
		m.info.Pooling = engine.PoolingLast
	case model.PoolingCLS:
		m.info.Pooling = engine.PoolingCLS
	case model.PoolingRank: // its labels say so
	default:
		m.info.NoPooling = string(d.Pooling)
	}
	m.info.Prompts, m.info.Prompt, m.info.RawScore = d.Prompts, d.Prompt, d.RawScores
	s := &d.Sampling
	m.defaults = Sampling{Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP, TypicalP: s.TypicalP,
		RepetitionPenalty: s.RepetitionPenalty, PenaltyLastN: s.PenaltyLastN, XTCProbability: s.XTCProbability, XTCThreshold: s.XTCThreshold,
		Mirostat: s.Mirostat, MirostatTau: s.MirostatTau, MirostatEta: s.MirostatEta}
	order, err := sample.ParseOrder(s.Samplers)
	if err != nil {
		return fmt.Errorf("server: %s: %s: %w", m.info.Path, s.From, err)
	}
	m.defaults.Samplers = order
	return nil
}

// readMeta takes over what a file says of itself.
func (m *Model) readMeta(f *gguf.File) {
	if f == nil {
		return
	}
	m.info.License = f.String("general.license", "")
	m.info.Meta = func() map[string]any {
		out := map[string]any{}
		for _, k := range f.Keys() {
			v, _ := f.Lookup(k)
			switch v.(type) {
			case string, bool, uint8, int8, uint16, int16, uint32, int32, uint64, int64:
				out[k] = v
			case float32, float64:
				out[k] = finite(v)
			default: // arrays are too long to show
				out[k] = nil
			}
		}
		delete(out, "tokenizer.chat_template")
		return out
	}
}

// finite returns a float that JSON can hold.
func finite(v any) any {
	f, ok := v.(float64)
	if x, is := v.(float32); is {
		f, ok = float64(x), true
	}
	if !ok || f != f || f > 1e300 || f < -1e300 {
		return nil
	}
	return v
}

func sizeOf(path string) (size int64, modified time.Time) {
	_ = filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what cannot be read is not counted
		}
		if st, err := os.Stat(path); err == nil && !st.IsDir() {
			size, modified = st.Size(), st.ModTime()
			return nil
		}
		if st, err := d.Info(); err == nil {
			size += st.Size()
			if st.ModTime().After(modified) {
				modified = st.ModTime()
			}
		}
		return nil
	})
	return size, modified
}

// Fingerprint names the model's file, and what was asked for that changes its
// answers, for the worse or, as exact activations, for the better.
func (m *Model) Fingerprint() string {
	fp := "fp_" + m.info.Digest[:min(12, len(m.info.Digest))]
	if m.info.Lossy != "" {
		fp += "_" + m.info.Lossy
	}
	if m.info.Act != 0 {
		fp += "_act-" + m.info.Act.String()
	}
	return fp
}
