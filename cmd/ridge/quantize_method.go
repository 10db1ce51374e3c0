package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/pflag"

	"ridge/compress"
	"ridge/measure/machine"
	"ridge/model"
	"ridge/weights/gguf"
)

// methodFlags say how the matrices of layers are rounded.
type methodFlags struct {
	name, text    string
	keep, memory  string
	chunk, tokens int
	damp          float64
	actOrder      bool
	rounded       []compress.Rounded
}

func (f *methodFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.name, "method", "", "how matrices of layers are rounded: rtn, gptq, quantease, signround, awq, clip, smoothquant, hqq, absmean, or two as in awq+clip (default: as llama.cpp's quantizer does, which is rtn)")
	fs.StringVar(&f.text, "calibration", "", "text that methods and the type auto compute; with rtn it only measures what is lost")
	fs.IntVar(&f.chunk, "calibration-chunk", 512, "tokens of the calibration text computed as a sequence of their own")
	fs.IntVar(&f.tokens, "calibration-tokens", 0, "use only the first tokens of the calibration text (default: all)")
	fs.Float64Var(&f.damp, "damp", 0.01, "gptq: share of the inputs' mean square added to the diagonal")
	fs.StringVar(&f.keep, "keep", "", "folder for finished layers: the same command goes on with them after one that was ended")
	fs.StringVar(&f.memory, "memory", "", "most memory that the command may take, such as 4G: of the model only what has room is in memory, and rows of the text lie in a file beside the output")
	fs.BoolVar(&f.actOrder, "act-order", false, "gptq: columns with the largest inputs first")
}

// set opens what the method needs for a file, as o wants it, with files of its own in the
// folder beside. done ends it.
func (f *methodFlags) set(file *gguf.File, beside string, o *compress.Options, auto bool) (done func(), err error) {
	done = func() {}
	if f.name == "" || f.text == "" {
		for flag, value := range map[string]string{"keep": f.keep, "memory": f.memory} {
			if value != "" {
				return done, fmt.Errorf("--%s: expected a --method with a --calibration text, found none", flag)
			}
		}
	}
	if f.name == "" {
		if f.text != "" && !auto {
			return done, errors.New("--calibration: expected --method too, found none (--imatrix takes an importance matrix)")
		}
		return done, nil
	}
	m := &compress.Method{Chunk: f.chunk, Keep: f.keep, Report: func(r compress.Rounded) { f.rounded = append(f.rounded, r) }}
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
	if f.memory != "" {
		if m.Scratch, err = os.MkdirTemp(beside, ".quantize-"); err != nil {
			return done, err
		}
		done = func() { os.RemoveAll(m.Scratch) }
		if err := f.cap(file, m.Scratch, &mo); err != nil {
			return done, err
		}
	}
	remove := done
	if m.Model, err = model.Open(file.Name(), mo); err != nil {
		return done, err
	}
	done = func() {
		m.Model.Close()
		remove()
	}
	if m.Model.Tokenizer() == nil {
		return done, fmt.Errorf("%s: expected a tokenizer in the file, found none", file.Name())
	}
	m.Tokens = textTokens(m.Model.Tokenizer(), b, f.tokens)
	m.Chunk, m.Dataset = min(f.chunk, m.Model.Context()), filepath.Base(f.text)
	return done, nil
}

// cap has the model that computes the text take what the memory leaves that may be taken,
// with its packed weights in a file within dir if that is less than they are.
func (f *methodFlags) cap(file *gguf.File, dir string, mo *model.Options) error {
	most, err := parseSize(f.memory)
	if err != nil || most < 1 {
		return fmt.Errorf("--memory: expected a number of bytes such as 4G, found %q", f.memory)
	}
	debug.FreeOSMemory()
	p := machine.ReadProcess()
	program := p.Anon + p.File + 40<<20 // and what the tokenizer and the threads will take
	heap, mapped := compress.LayerMemory(file)
	if least := program + heap + mapped; most < least {
		return fmt.Errorf("--memory: expected at least %s, which the largest layer of %s takes with the sums of its inputs, found %s",
			bytesText(least), file.Name(), bytesText(most))
	}
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(program + heap)
	mo.Context, mo.Memory = f.chunk, most-program-heap-mapped
	mo.PackCache = model.PackCache{Dir: dir}
	return nil
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
