// Package ridge runs language models on ordinary processors: it opens a model
// by name or path, generates text, chats, calls tools, embeds and tokenizes.
//
//	m, err := ridge.Open(ctx, "smollm2", ridge.Options{})
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	for tok, err := range m.Generate(ctx, "The sky is", ridge.Generation{MaxTokens: 20}) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(tok.Text)
//	}
//
// A model may be used from any number of goroutines: what they ask for at the
// same time is computed together, and each gets the answer that it would get
// alone. Prompts that begin alike are computed once.
package ridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ridge/engine"
	"ridge/hub"
	"ridge/measure/machine"
	"ridge/model"
	"ridge/sample"
	"ridge/sched"
	"ridge/spec"
	"ridge/text/chat"
	"ridge/text/constraint"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

// Options are the choices at opening a model. The zero value suits most uses.
type Options struct {
	Workers    int       // threads; 0 means as many as were measured to be best here, see ridge doctor, or one per core given to the process
	Context    int       // positions of a sequence; 0 means what the model was made for, at most DefaultContext
	KV         KV        // element type of keys and values
	KVBytes    int64     // memory for keys and values of all sequences; 0 means one sequence of Context tokens
	Act        model.Act // activations that quantized matrices read
	PageTokens int       // tokens in a page of keys and values; 0 means 64
	Chunk      int       // tokens of a prompt that are computed at once; 0 means as many as a step has room for, 512
	Template   string    // chat template to use in place of the model's own
	// Reasoning names the tags of reasoning, such as "think", for models whose
	// template does not show them; "none" leaves all reasoning in the text.
	Reasoning string
	// TrustMarks makes control tokens of their texts in messages too, as other
	// programs do, see chat.Options.
	TrustMarks bool

	// Speculative says whether next tokens are guessed and several computed at once,
	// see spec.Parse: answers do not depend on it. The zero value is spec.Off.
	Speculative spec.Setting

	BatchWorkers int  // threads for prompts; 0 means as many as Workers, if that is not 0
	Pin          bool // bind each thread to a core of its own while it computes

	// PackCache keeps the weights, as the kernels read them, in a file below the
	// user's folder for caches, about as large as the model. Later starts map it
	// instead of packing again. Hub.Notify is told why it could not be kept.
	PackCache bool
	// Memory is how many bytes the model may take; 0 means what the system and the
	// control groups leave. What needs more is refused with a *model.MemoryError or,
	// with PackCache, read from the file as it is needed: see Beyond.
	Memory int64

	Hub      hub.Options             // where models are looked for and kept
	Progress func(done, total int64) // told how many bytes of weights are ready
}

// DefaultContext bounds the context of models made for longer ones, so that
// the memory reserved for keys and values stays small.
const DefaultContext = 8192

// KV is the element type of keys and values.
type KV uint8

// The types. KVQ8_0 takes half the memory of KVF16 and changes results a little.
// KVBF16 changes them less, and is read faster by processors with AMX.
const (
	KVF16 KV = iota
	KVF32
	KVQ8_0
	KVBF16
)

var kvTypes = [...]struct {
	name string
	t    tensor.DType
}{KVF16: {"f16", tensor.F16}, KVF32: {"f32", tensor.F32}, KVQ8_0: {"q8_0", tensor.Q8_0}, KVBF16: {"bf16", tensor.BF16}}

// ParseKV returns the type that name stands for: f16, f32, bf16 or q8_0; "" is f16.
func ParseKV(name string) (KV, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	for k, t := range kvTypes {
		if name == t.name || name == "" {
			return KV(k), nil
		}
	}
	return 0, fmt.Errorf("ridge: type of keys and values: expected f16, f32, bf16 or q8_0, found %q", name)
}

// String returns the name that ParseKV reads.
func (k KV) String() string {
	if int(k) < len(kvTypes) {
		return kvTypes[k].name
	}
	return fmt.Sprintf("KV(%d)", uint8(k))
}

// DType returns the type of the elements.
func (k KV) DType() tensor.DType {
	if int(k) < len(kvTypes) {
		return kvTypes[k].t
	}
	return ^tensor.DType(0) // none
}

// Model is an open model. Its methods may be called from any number of
// goroutines, also within a loop over an answer.
type Model struct {
	Name string    // as it was asked for
	Path string    // file or directory that was opened
	From hub.Model // where Open found it, with its licence and notes; zero after OpenFile

	e      *engine.Engine
	m      *model.Model // of e; accessors only
	tok    *tokenizer.Tokenizer
	tmpl   *chat.Template
	form   chat.Form // that stands in for a template, if there is none
	syntax chat.Syntax
	ends   []int32        // tokens that end an answer
	marks  map[int32]bool // control tokens that a parser wants to see
	hold   *constraint.Compiler
}

// Open finds the model that name stands for (a catalog name, a reference such
// as hf:org/repo, or a path), downloads it if it is not here, and opens it.
func Open(ctx context.Context, name string, o Options) (*Model, error) {
	found, err := hub.Resolve(ctx, name, o.Hub)
	if err != nil {
		return nil, err
	}
	m, err := OpenFile(found.Path(), o)
	if err != nil {
		return nil, err
	}
	m.Name, m.From = name, *found
	return m, nil
}

// OpenFile opens a GGUF file or a directory with a Hugging Face checkpoint.
func OpenFile(path string, o Options) (*Model, error) {
	cfg, err := o.sched()
	if err != nil {
		return nil, err
	}
	mo := model.DefaultOptions()
	mo.Workers, mo.BatchWorkers, mo.Measured, mo.Pin = o.Workers, o.BatchWorkers, machine.Known(), o.Pin
	mo.PageTokens, mo.Progress = o.PageTokens, o.Progress
	mo.Context, mo.MaxContext = o.Context, DefaultContext
	mo.KV, mo.KVBytes, mo.Act = o.KV.DType(), o.KVBytes, o.Act
	mo.Memory = o.Memory
	if o.PackCache {
		mo.KeepPacked(o.Hub.Notify)
	}
	mm, err := model.Open(path, mo)
	if err != nil {
		return nil, err
	}
	m := &Model{Name: path, Path: path, m: mm, tok: mm.Tokenizer()}
	if m.tok == nil {
		err = fmt.Errorf("ridge: %s: tokenizer: expected one in the file or beside it, found none", path)
	} else if _, err = recommend(sample.Params{}, m.Recommended()); err == nil {
		err = m.compileTemplate(o.Template, &o)
	}
	if err == nil {
		err = m.start(cfg, &o)
	}
	if err != nil {
		return nil, errors.Join(err, mm.Close())
	}
	return m, nil
}

// start starts the engine.
func (m *Model) start(cfg sched.Config, o *Options) error {
	d, err := Drafting(context.Background(), o.Speculative, m.m, o.Hub)
	if err != nil {
		return err
	}
	m.e, err = engine.New(m.m, engine.Options{Sched: &cfg, DropAfter: patience, Draft: d})
	return err
}

// patience is how long an answer waits for its loop to go on: a program may do
// as it likes between two tokens.
const patience = 365 * 24 * time.Hour

// sched returns how steps are filled.
func (o *Options) sched() (sched.Config, error) {
	cfg, err := sched.Preset("ridge")
	switch {
	case err != nil:
		return cfg, err
	case o.Chunk < 0:
		return cfg, fmt.Errorf("ridge: chunk: expected 0 or more tokens, found %d", o.Chunk)
	case int(o.KV) >= len(kvTypes):
		return cfg, fmt.Errorf("ridge: type of keys and values: expected KVF16, KVF32, KVBF16 or KVQ8_0, found %v", o.KV)
	case o.Chunk > 0:
		cfg.Chunk, cfg.MaxTokens = o.Chunk, max(cfg.MaxTokens, o.Chunk)
	}
	return cfg, nil
}

// compileTemplate makes the roads from messages to tokens and back.
func (m *Model) compileTemplate(source string, o *Options) (err error) {
	if source == "" {
		source = m.m.ChatTemplate()
	}
	if source == "" {
		m.form = chat.FormOf(m.m.Config().Arch, m.m.Defaults().Name, m.tok)
		source = m.form.Source
	}
	of := chat.OptionsFor(m.Path, m.tok)
	of.TrustMarks = o.TrustMarks
	if m.tmpl, err = chat.Compile(source, of); err != nil {
		return err
	}
	m.syntax = chat.SyntaxOf(source).WithReasoning(o.Reasoning)
	m.ends, m.marks = m.syntax.EndTokens(m.tok), m.syntax.MarkTokens(m.tok)
	m.hold = constraint.NewCompiler(m.tok, m.syntax, m.ends)
	return nil
}

// Close ends all generations and gives the model's memory back.
func (m *Model) Close() error { return errors.Join(m.e.Close(), m.m.Close()) }

// Tokenizer returns the model's tokenizer.
func (m *Model) Tokenizer() *tokenizer.Tokenizer { return m.tok }

// Template returns the chat template in use.
func (m *Model) Template() *chat.Template { return m.tmpl }

// Engine returns the engine behind m, for requests with what Generation has no
// field for, such as scores of prompts and beam search, and for counters. It
// belongs to m.
func (m *Model) Engine() *engine.Engine { return m.e }

// Context returns the positions that a sequence may have.
func (m *Model) Context() int { return m.m.Context() }

// Config returns what is known of the model's architecture.
func (m *Model) Config() model.Config { return m.m.Config() }

// Act returns how activations are kept that quantized matrices read.
func (m *Model) Act() model.Act { return m.m.Act() }

// Parameters returns the number of weights.
func (m *Model) Parameters() int64 { return m.m.Parameters() }

// WeightBytes returns the bytes of matrices that a token of an answer reads.
func (m *Model) WeightBytes() int64 { return m.m.WeightBytes() }

// TokenBytes returns the bytes of keys and values that a token takes.
func (m *Model) TokenBytes() int { return m.m.Pool().TokenBytes() }

// ChatTemplate returns the source of the model's own chat template, "" if it
// has none.
func (m *Model) ChatTemplate() string { return m.m.ChatTemplate() }

// Widths returns how many threads compute answers of few sequences, and prompts.
func (m *Model) Widths() (narrow, wide int) { return m.m.Widths() }

// PackedFrom says how the weights came to be packed: "" if that was done at the
// start, "mapped" or "copied" if they were kept, see Options.PackCache, "read
// again" if they do not fit into memory.
func (m *Model) PackedFrom() string { return m.m.PackedFrom() }

// Beyond returns how the model runs whose weights do not fit into memory, nil if
// they do.
func (m *Model) Beyond() *model.Beyond { return m.m.Beyond() }

// Tokenize returns the token ids of text. Text that spells a special token
// becomes that token; the vocabulary's own start and end tokens are added.
func (m *Model) Tokenize(text string) []int32 {
	return m.tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
}

// Detokenize returns the text of ids.
func (m *Model) Detokenize(ids []int32) string { return m.tok.Decode(ids) }
