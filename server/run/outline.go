package run

import (
	"context"
	"slices"
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
	m.templates = l.templates
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
