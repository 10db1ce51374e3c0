package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"ridge/compress"
	"ridge/model"
	"ridge/weights/gguf"
)

// methodFlags say how the matrices of layers are rounded.
type methodFlags struct {
	name, text    string
	chunk, tokens int
	damp          float64
	actOrder      bool
	rounded       []compress.Rounded
}

func (f *methodFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.name, "method", "", "how matrices of layers are rounded: rtn, gptq, awq, smoothquant, hqq, or two as in smoothquant+gptq (default: as llama.cpp's quantizer does, which is rtn)")
	fs.StringVar(&f.text, "calibration", "", "text that methods and the type auto compute; with rtn it only measures what is lost")
	fs.IntVar(&f.chunk, "calibration-chunk", 512, "tokens of the calibration text computed as a sequence of their own")
	fs.IntVar(&f.tokens, "calibration-tokens", 0, "use only the first tokens of the calibration text (default: all)")
	fs.Float64Var(&f.damp, "damp", 0.01, "gptq: share of the inputs' mean square added to the diagonal")
	fs.BoolVar(&f.actOrder, "act-order", false, "gptq: columns with the largest inputs first")
}

// set opens what the method needs for a file, as o wants it. done ends it.
func (f *methodFlags) set(file *gguf.File, o *compress.Options, auto bool) (done func(), err error) {
	done = func() {}
	if f.name == "" {
		if f.text != "" && !auto {
			return done, errors.New("--calibration: expected --method too, found none (--imatrix takes an importance matrix)")
		}
		return done, nil
	}
	m := &compress.Method{Chunk: f.chunk, Report: func(r compress.Rounded) { f.rounded = append(f.rounded, r) }}
	if m.Pass, err = compress.ParsePass(f.name, f.actOrder, f.damp); err != nil {
		return done, err
	}
	o.Method = m
	if f.text == "" {
		return done, nil
	}
	b, err := os.ReadFile(f.text)
	if err != nil {
		return done, fmt.Errorf("--calibration: %w", err)
	}
	mo := model.DefaultOptions()
	mo.Workers = o.Threads
	if m.Model, err = model.Open(file.Name(), mo); err != nil {
		return done, err
	}
	done = func() { m.Model.Close() }
	if m.Model.Tokenizer() == nil {
		return done, fmt.Errorf("%s: expected a tokenizer in the file, found none", file.Name())
	}
	m.Tokens = textTokens(m.Model.Tokenizer(), b, f.tokens)
	m.Chunk, m.Dataset = min(f.chunk, m.Model.Context()), filepath.Base(f.text)
	return done, nil
}

// report prints what share of the outputs' squares each kind of rounding changed, and
// which matrices were out of the ordinary.
func (f *methodFlags) report(w io.Writer) {
	if len(f.rounded) == 0 {
		return
	}
	sum, plain := 0.0, 0.0
	for _, r := range f.rounded {
		sum, plain = sum+r.Lost, plain+r.Plain
		if r.Note != "" {
			fmt.Fprintf(w, "%s: %s; loses %.3g of its outputs, plain rounding %.3g\n", r.Name, r.Note, r.Lost, r.Plain)
		}
	}
	n := float64(len(f.rounded))
	fmt.Fprintf(w, "%s: %d matrices lose %.3g of their outputs' squares on the calibration text, plain rounding %.3g\n", f.name, len(f.rounded), sum/n, plain/n)
}
