package run

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"ridge/model"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// Describe returns the model that a client named, to be shown. Of one that is not
// loaded only the headers of its file are read, so that a client that asks about
// every model does not have them all loaded; such a model cannot answer.
func (l *Library) Describe(ctx context.Context, name string) (*Loan, error) {
	return l.named(ctx, name, l.headers)
}

func (l *Library) headers(ctx context.Context, name, asked string) (*Loan, error) {
	c, ok := l.Find(name)
	if !ok || slices.ContainsFunc(l.Loaded(), func(m *Model) bool { return m.info.Name == c.Name }) {
		return l.files(ctx, name, asked)
	}
	m, f, err := readHeaders(&c)
	if err != nil { // safetensors, or a file that cannot be used: loading it tells
		return l.files(ctx, name, asked)
	}
	m.templates, m.adapters = l.templates, l.Adapters()
	return &Loan{Model: m, file: f}, nil
}

// readHeaders makes a model of the headers of a GGUF file, which must stay open
// while it is used.
func readHeaders(c *ModelConfig) (*Model, *gguf.File, error) {
	f, err := gguf.Open(c.Path)
	if err != nil {
		return nil, nil, err
	}
	m, err := headerModel(c, f)
	if err != nil {
		_ = f.Close() // it was only read
		return nil, nil, err
	}
	return m, f, nil
}

func headerModel(c *ModelConfig, f *gguf.File) (*Model, error) {
	out, err := model.ReadOutline(c.Path)
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		return nil, err
	}
	m := bare(nil, tok, Info{Name: c.Name, Aliases: c.Aliases, Path: c.Path, Context: out.Config.Context, Created: time.Now(), Arch: out.Config.Arch,
		Parameters: out.Parameters, Hidden: out.Config.Hidden, Train: out.Config.Context, Quant: out.FileType})
	d, err := model.ReadDefaults(c.Path, f)
	if err != nil {
		return nil, err
	}
	return m, m.describe(c, f.String("tokenizer.chat_template", ""), &d, f)
}

// outlines keeps what the headers of files say, as long as these stay as they are.
type outlines struct {
	mu    sync.Mutex
	known map[string]outlined // by path
}

type outlined struct {
	size     int64
	modified time.Time
	info     Info
	err      error
}

// maxOutlines bounds what is kept.
const maxOutlines = 1024

// Outline is what the headers of a model's files say, for lists: its architecture,
// parameters, quantization and sizes. They are read once.
func (l *Library) Outline(c *ModelConfig) (Info, error) {
	size, modified := sizeOf(c.Path)
	o := &l.outlines
	o.mu.Lock()
	x, ok := o.known[c.Path]
	o.mu.Unlock()
	if ok && x.size == size && x.modified.Equal(modified) {
		return x.info, x.err
	}
	x = outlined{size: size, modified: modified}
	out, err := model.ReadOutline(c.Path)
	if x.err = err; err == nil {
		x.info = Info{Arch: out.Config.Arch, Parameters: out.Parameters, Hidden: out.Config.Hidden, Context: out.Config.Context, Quant: cmp.Or(c.Quant, out.FileType),
			ReadsOnly: out.Config.Encoder.Both || out.Net.Classes != nil}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || len(o.known) >= maxOutlines {
		o.known = map[string]outlined{}
	}
	o.known[c.Path] = x
	return x.info, x.err
}
