// Package ridge runs language models on ordinary processors: it opens a model
// by name or path, generates text, chats, embeds and tokenizes.
//
//	m, err := ridge.Open(ctx, "smollm2", ridge.Options{})
//	defer m.Close()
//	for tok, err := range m.Generate(ctx, "The sky is", ridge.Generation{MaxTokens: 20}) {
//		fmt.Print(tok.Text)
//	}
package ridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"ridge/hub"
	"ridge/kvcache"
	"ridge/measure/machine"
	"ridge/model"
	"ridge/text/chat"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

// Options are the choices at opening a model. The zero value suits most uses.
type Options struct {
	Workers    int    // threads; 0 means as many as were measured to be best here, see ridge doctor, or one per core given to the process
	Context    int    // positions of a sequence; 0 means what the model was made for, at most DefaultContext
	KV         string // element type of keys and values: f16 ("" too), f32, or q8_0, which changes results a little
	Act        string // activations that quantized matrices read: int8 ("" too), or int16, which is nearly exact and up to twice the work
	PageTokens int    // tokens in a page of keys and values; 0 means 64
	Chunk      int    // tokens of a prompt that are computed at once; 0 means 512
	Template   string // chat template to use in place of the model's own

	BatchWorkers int  // threads for prompts; 0 means as many as Workers, if that is not 0
	Pin          bool // bind each thread to a core of its own while it computes

	// PackCache keeps the weights, as the kernels read them, in a file below the
	// user's folder for caches, about as large as the model. Later starts map it
	// instead of packing again. Hub.Notify is told why it could not be kept.
	PackCache bool

	Hub      hub.Options             // where models are looked for and kept
	Progress func(done, total int64) // told how many bytes of weights are ready
}

// DefaultContext bounds the context of models made for longer ones, so that
// the memory reserved for keys and values stays small.
const DefaultContext = 8192

// Model is an open model. Its methods may be called from several goroutines;
// generations run one after the other.
type Model struct {
	Name string // as it was asked for
	Path string // file or directory that was opened

	mu    sync.Mutex
	m     *model.Model
	tok   *tokenizer.Tokenizer
	tmpl  *chat.Template
	chunk int

	seq  *kvcache.Seq // keys and values of the last generation
	held []int32      // its tokens
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
	m.Name = name
	return m, nil
}

// OpenFile opens a GGUF file or a directory with a Hugging Face checkpoint.
func OpenFile(path string, o Options) (*Model, error) {
	mo := model.DefaultOptions()
	mo.Workers, mo.BatchWorkers, mo.Measured, mo.Pin = o.Workers, o.BatchWorkers, machine.Known(), o.Pin
	mo.PageTokens, mo.Progress = o.PageTokens, o.Progress
	mo.Context, mo.MaxContext = o.Context, DefaultContext
	if o.PackCache {
		mo.PackCache = model.DefaultPackCache(o.Hub.Notify)
	}
	kv, err := ParseKV(o.KV)
	if err != nil {
		return nil, err
	}
	mo.KV = kv
	if mo.Act, err = model.ParseAct(o.Act); err != nil {
		return nil, fmt.Errorf("ridge: %w", err)
	}
	mm, err := model.Open(path, mo)
	if err != nil {
		return nil, err
	}
	m := &Model{Name: path, Path: path, m: mm, tok: mm.Tokenizer(), chunk: o.Chunk}
	if m.chunk <= 0 {
		m.chunk = 512
	}
	if m.tok == nil {
		mm.Close()
		return nil, fmt.Errorf("ridge: %s: tokenizer: expected one in the file or beside it, found none", path)
	}
	if m.tmpl, err = m.compileTemplate(o.Template); err != nil {
		mm.Close()
		return nil, err
	}
	m.seq = mm.Pool().NewSeq()
	return m, nil
}

// ParseKV returns the element type that Options.KV names.
func ParseKV(name string) (tensor.DType, error) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "", "f16":
		return tensor.F16, nil
	case "f32":
		return tensor.F32, nil
	case "q8_0":
		return tensor.Q8_0, nil
	}
	return 0, fmt.Errorf("ridge: type of keys and values: expected f16, f32 or q8_0, found %q", name)
}

func (m *Model) compileTemplate(source string) (*chat.Template, error) {
	if source == "" {
		source = m.m.ChatTemplate()
	}
	if source == "" {
		source = chat.Default(m.m.Config().Arch)
	}
	return chat.Compile(source, chat.OptionsFor(m.Path, m.tok))
}

// Close gives the model's memory back.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m.Close()
}

// Tokenizer returns the model's tokenizer.
func (m *Model) Tokenizer() *tokenizer.Tokenizer { return m.tok }

// Template returns the chat template in use.
func (m *Model) Template() *chat.Template { return m.tmpl }

// Inner returns the model behind m, for programs that run their own batches.
// It must not be used while a generation runs.
func (m *Model) Inner() *model.Model { return m.m }

// Tokenize returns the token ids of text. Text that spells a special token
// becomes that token; the vocabulary's own start and end tokens are added.
func (m *Model) Tokenize(text string) []int32 {
	return m.tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
}

// Detokenize returns the text of ids.
func (m *Model) Detokenize(ids []int32) string { return m.tok.Decode(ids) }

// Pooling says how the states of a text's tokens become one embedding.
type Pooling int

// The poolings.
const (
	PoolMean Pooling = iota // mean of all tokens
	PoolLast                // last token
)

// Embed returns an embedding of text, scaled to length 1.
func (m *Model) Embed(ctx context.Context, text string, p Pooling) ([]float32, error) {
	ids := m.Tokenize(text)
	if len(ids) == 0 {
		return nil, errors.New("ridge: embed: expected text, found none")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seq := m.m.Pool().NewSeq()
	defer m.m.Pool().Free(seq)
	m.forget()
	sum := make([]float64, m.m.Config().Hidden)
	for len(ids) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(len(ids), m.chunk)
		if err := m.m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: ids[:n], Outputs: n}}, NoLogits: true}); err != nil {
			return nil, err
		}
		ids = ids[n:]
		for i := range n {
			if p == PoolLast && (len(ids) > 0 || i < n-1) {
				continue
			}
			for j, v := range m.m.Hidden(i) {
				sum[j] += float64(v)
			}
		}
	}
	return model.Unit(sum), nil
}

// forget drops the keys and values of the last generation.
func (m *Model) forget() {
	m.m.Pool().Free(m.seq)
	m.held = m.held[:0]
}
