package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ridge/engine"
	"ridge/model"
	"ridge/text/chat"
	"ridge/text/grammar"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// backend is what the server needs of an engine.
type backend interface {
	Submit(ctx context.Context, r engine.Request) (stream, error)
	Stats() engine.Stats
	Drain(ctx context.Context) error
	Healthy() error
	Close() error
}

// stream is what the server needs of a stream of events.
type stream interface {
	Next(ctx context.Context) (engine.Event, bool)
	Stop(choice int)
	Close()
}

// engineBackend is an engine as a backend.
type engineBackend struct{ *engine.Engine }

func (b engineBackend) Submit(ctx context.Context, r engine.Request) (stream, error) {
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
	// JumpAhead is what requests for structured output get that do not say
	// whether forced text is drawn, see jump_ahead in docs/grammars.md.
	JumpAhead bool
	Digest    string    // sha256 of the file in hexadecimal, "" if unknown
	Size      int64     // bytes of its files
	Modified  time.Time // of its files
	Quant     string    // name of its quantization, "" if unknown
}

// Model is a model that is loaded and can answer.
type Model struct {
	name     string
	aliases  []string
	path     string
	backend  backend
	tok      *tokenizer.Tokenizer
	tmpl     *chat.Template
	source   string // of the template
	ownTmpl  bool   // the template came with the model or from the user
	syntax   chat.Syntax
	context  int
	defaults sampling
	ends     []int32        // tokens that end an answer
	marks    map[int32]bool // control tokens that a parser wants to see
	pooling  engine.Pooling
	jump     bool // forced text is not drawn unless a request says otherwise

	// Of a created model: whose files it has, what it says, the messages before
	// each conversation, what ends answers and how long they are at most.
	base      *Model
	variant   *variant
	before    []chat.Message
	stops     []string
	maxTokens *integer

	crosses  bool // it reads a query and a text at once
	info     modelInfo
	created  time.Time
	loadTime atomic.Int64 // nanoseconds
	close    func() error

	vocabOnce sync.Once
	vocab     *grammar.Vocabulary
	grammars  *grammar.Cache
}

// modelInfo is what is shown of a model.
type modelInfo struct {
	Arch       string
	Parameters int64
	Hidden     int
	Train      int // context that it was made for
	Quant      string
	Digest     string
	Size       int64
	Modified   time.Time
	License    string
	PageTokens int
	KV         string    // element type of keys and values
	Act        model.Act // activations that quantized matrices read
	Lossy      string    // what changes answers and was asked for, by name; "" if nothing
	Pages      int
	Workers    int
	Meta       func() map[string]any // metadata of the file, nil if it has none
}

// NewModel makes a model out of an engine. A server that it is given to owns
// the engine and the engine's model from then on.
func NewModel(c ModelConfig) (*Model, error) {
	mm := c.Engine.Model()
	tok := mm.Tokenizer()
	if tok == nil {
		return nil, fmt.Errorf("server: %s: tokenizer: expected one in the file or beside it, found none", c.Path)
	}
	m := &Model{
		name: c.Name, aliases: c.Aliases, path: c.Path, backend: engineBackend{c.Engine}, tok: tok, context: mm.Context(), created: time.Now(), grammars: grammar.NewCache(maxGrammars),
		close: func() error {
			err := c.Engine.Close()
			if e := mm.Close(); err == nil {
				err = e
			}
			return err
		},
	}
	m.info = modelInfo{
		Arch: mm.Config().Arch, Parameters: mm.Parameters(), Hidden: mm.Config().Hidden, Train: mm.Config().Context, Workers: mm.Workers(),
		Quant: mm.FileType(), PageTokens: mm.Pool().PageTokens(), KV: mm.Pool().DType().String(), Act: mm.Act(), Pages: c.Engine.Pages(),
	}
	if kv := m.info.KV; kv != "F16" && kv != "F32" {
		m.info.Lossy = "kv-" + strings.ToLower(kv)
	}
	if m.jump = c.JumpAhead; m.jump {
		m.info.Lossy = strings.TrimPrefix(m.info.Lossy+"+jump-ahead", "+")
	}
	if err := m.describe(&c, mm.ChatTemplate(), mm.GGUF()); err != nil {
		return nil, err
	}
	return m, nil
}

// describe fills in what c and the file say of m, whether or not it is loaded.
func (m *Model) describe(c *ModelConfig, template string, f *gguf.File) error {
	source := cmp.Or(c.Template, template)
	m.ownTmpl = source != ""
	if !m.ownTmpl {
		source = chat.Default(m.info.Arch)
	}
	if err := m.setTemplate(source, c.Reasoning); err != nil {
		return err
	}
	m.info.Quant, m.info.Digest, m.info.Size, m.info.Modified = cmp.Or(c.Quant, m.info.Quant), c.Digest, c.Size, c.Modified
	m.readDefaults(f)
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

// engine is the engine behind m, nil in tests without one.
func (m *Model) engine() *engine.Engine {
	b, _ := m.backend.(engineBackend)
	return b.Engine
}

func (m *Model) setLoadTime(d time.Duration) { m.loadTime.Store(int64(d)) }

// setTemplate compiles the template and what follows from it.
func (m *Model) setTemplate(source, reasoning string) error {
	var err error
	m.source = source
	if m.tmpl, err = chat.Compile(source, chat.OptionsFor(m.path, m.tok)); err != nil {
		return err
	}
	m.syntax = chat.SyntaxOf(source)
	switch reasoning {
	case "":
	case "none":
		m.syntax.ThinkOpen, m.syntax.ThinkClose = "", ""
	default:
		m.syntax.ThinkOpen, m.syntax.ThinkClose = "<"+reasoning+">", "</"+reasoning+">"
	}
	m.marks = map[int32]bool{}
	for _, text := range m.syntax.Marks() {
		if id, ok := m.tok.ID(text); ok && m.tok.IsControl(id) {
			m.marks[id] = true
		}
	}
	m.ends = m.ends[:0]
	for id := range int32(m.tok.VocabSize()) {
		if m.tok.IsEOG(id) && (!m.syntax.Harmony() || string(m.tok.Piece(id)) != "<|end|>") {
			m.ends = append(m.ends, id)
		}
	}
	return nil
}

// piece is the text of a special token, "" for none.
func (m *Model) piece(id int32) string {
	if id < 0 {
		return ""
	}
	return string(m.tok.Piece(id))
}

// vocabulary is what grammars are compiled for.
func (m *Model) vocabulary() *grammar.Vocabulary {
	if m.base != nil {
		return m.base.vocabulary()
	}
	m.vocabOnce.Do(func() {
		m.vocab = grammar.NewVocabulary(m.tok.Piece, m.tok.VocabSize(), m.ends, m.tok.IsControl)
		m.vocab.SpellWith(m.continuation)
	})
	return m.vocab
}

// named reports whether clients may mean m by name. Ollama's clients add a tag.
func (m *Model) named(name string) bool {
	same := func(a string) bool {
		return strings.EqualFold(a, name) || strings.EqualFold(a, strings.TrimSuffix(name, ":latest"))
	}
	return same(m.name) || slices.ContainsFunc(m.aliases, same)
}

// readDefaults takes over what a file recommends for its model.
func (m *Model) readDefaults(f *gguf.File) {
	if f == nil {
		return
	}
	arch := f.String("general.architecture", "")
	switch f.Uint(arch+".pooling_type", 0) {
	case 1:
		m.pooling = engine.PoolingMean
	case 3:
		m.pooling = engine.PoolingLast
	case 4:
		m.crosses = true
	}
	m.info.License = f.String("general.license", "")
	set := func(dst **float64, key string) {
		if _, ok := f.Lookup(key); ok {
			v := f.Float(key, 0)
			*dst = &v
		}
	}
	set(&m.defaults.Temperature, "general.sampling.temp")
	set(&m.defaults.TopP, "general.sampling.top_p")
	set(&m.defaults.MinP, "general.sampling.min_p")
	set(&m.defaults.RepetitionPenalty, "general.sampling.penalty_repeat")
	if _, ok := f.Lookup("general.sampling.top_k"); ok {
		k := int(f.Uint("general.sampling.top_k", 0))
		m.defaults.TopK = &k
	}
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

// encode turns a prompt's text into tokens.
func (m *Model) encode(text string, special bool) []int32 {
	return m.tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: special, ParseSpecial: true})
}
