package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"ridge/compress"
	"ridge/model"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// quantizeFlags are the flags of `ridge quantize`.
type quantizeFlags struct {
	hubFlags
	method                           methodFlags
	choose                           chooseFlags
	out, split, head, embed, imatrix string
	types                            []string
	pure, keepOutput, again          bool
	dry, force, asJSON               bool
	threads                          int
	rotate                           uint64
}

func quantizeCommand() *cobra.Command {
	var f quantizeFlags
	c := &cobra.Command{
		Use:   "quantize MODEL TYPE -o FILE.gguf",
		Short: "Write a smaller file of a model, with fewer bits for each weight",
		Long: `Write a model, a GGUF file or a folder with safetensors, as a GGUF file whose
matrices have fewer bits. TYPE is one of llama.cpp's mixtures, which give more bits to
the matrices that need them, and every tensor gets the type that llama.cpp gives it:

  ` + mixtureNames() + `

The file appears whole or not at all, and the same input gives the same bytes whatever
the number of threads. A model that is quantized already is refused: its errors would
add up. What was lost is measured by ridge eval kl.

--method gptq and awq round the matrices of layers, which keep their types and sizes,
with what their inputs are on a calibration text: gptq lets later columns pay for the
errors of earlier ones, awq multiplies columns whose inputs are large and divides what
comes before. quantease moves gptq's codes until the outputs change least, signround
learns which weights are rounded up, in the ranges that clip finds. smoothquant divides
for activations of few bits, hqq moves the zeros of Q4_1 and Q5_1, absmean is for TQ1_0
and TQ2_0. --rotate turns the residual stream first. How a file came to be stands in
its keys, ridge.quantize.*. Layers are computed one at a time: --keep goes on after a run
that was ended, and --memory bounds what is in memory; both give the same bytes.

The type auto chooses one for each matrix: a scan measures how far the model's
predictions of --calibration move when that matrix alone is small, and --size or
--max-kl say how small the file or how small the divergence must be.`,
		Example: `  ridge quantize model-bf16.gguf Q4_K_M -o model-q4_k_m.gguf
  ridge quantize ./checkpoint Q5_K_S -o model.gguf --tensor-type 'ffn_down=q6_k'
  ridge quantize model-bf16.gguf Q4_0 --method gptq --calibration text.txt -o gptq.gguf
  ridge quantize model-bf16.gguf auto --size 500M --calibration text.txt -o auto.gguf
  ridge quantize model-bf16.gguf Q3_K_M --dry-run`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0], args[1]) },
	}
	f.hubFlags.add(c)
	fs := c.Flags()
	f.method.add(fs)
	f.choose.add(fs)
	fs.StringVarP(&f.out, "output", "o", "", "file to write")
	fs.StringArrayVar(&f.types, "tensor-type", nil, "PATTERN=TYPE: element type of the matrices whose names match a regular expression; the first that fits counts")
	fs.StringVar(&f.head, "output-type", "", "element type of the output matrix")
	fs.StringVar(&f.embed, "embedding-type", "", "element type of the embedding")
	fs.StringVar(&f.imatrix, "imatrix", "", "importance matrix of ridge calibrate or llama.cpp: errors are kept small where they count")
	fs.BoolVar(&f.pure, "pure", false, "the mixture's main type for every matrix")
	fs.BoolVar(&f.keepOutput, "keep-output", false, "leave the output matrix as it is")
	fs.BoolVar(&f.again, "allow-requantize", false, "quantize again what is quantized already")
	fs.Uint64Var(&f.rotate, "rotate", 0, "seed, from 1, of a Hadamard matrix that turns the residual stream of the float model first (Llama, Qwen 2, Qwen 3); 0 for none")
	fs.StringVar(&f.split, "split-size", "", "most bytes of tensors in a file, such as 4G; several files are written then")
	fs.BoolVar(&f.dry, "dry-run", false, "print what would become of each tensor and the sizes, and write nothing")
	fs.BoolVar(&f.force, "force", false, "replace a file that is there")
	fs.IntVarP(&f.threads, "threads", "t", runtime.GOMAXPROCS(0), "threads")
	fs.BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// mixtureNames lists the mixtures in lines for help.
func mixtureNames() string {
	var b strings.Builder
	width := 0
	for _, m := range compress.Mixtures {
		if width += len(m.Name) + 1; width > 78 {
			b.WriteString("\n  ")
			width = len(m.Name) + 1
		}
		b.WriteString(m.Name + " ")
	}
	return strings.TrimRight(b.String(), " ")
}

func (f *quantizeFlags) run(c *cobra.Command, name, typ string) error {
	auto := strings.EqualFold(typ, "auto")
	o, err := f.options(typ)
	if err != nil {
		return err
	}
	switch {
	case f.dry:
	case !strings.HasSuffix(f.out, ".gguf"):
		return fmt.Errorf("--output: expected a name that ends in .gguf, found %q", f.out)
	default:
		if _, err := os.Stat(f.out); err == nil && !f.force {
			return fmt.Errorf("%s is there already: --force replaces it", f.out)
		}
	}
	bars := newProgress(os.Stderr)
	defer bars.close()
	paths, err := f.find(c, []string{name}, bars)
	if err != nil {
		return err
	}
	file, clean, err := f.open(paths[0])
	if err != nil {
		return err
	}
	defer func() { clean() }()
	if f.rotate > 0 {
		if file, clean, err = f.turned(file, clean); err != nil {
			return err
		}
	}
	opts := o(bars.work("quantizing"))
	done, err := f.method.set(file, f.beside(), &opts, auto)
	defer done()
	if err != nil {
		return err
	}
	if auto {
		if err := f.auto(c, file, &opts, bars.work("scanning")); err != nil {
			return err
		}
	}
	plan, err := compress.NewPlan(file, opts)
	if err != nil {
		return err
	}
	if f.dry {
		return f.writePlan(c.OutOrStdout(), plan)
	}
	files, err := plan.Write(c.Context(), f.out)
	bars.close()
	if err != nil {
		return err
	}
	f.method.report(c.ErrOrStderr())
	if plan.Fallbacks > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "%d matrices have rows that do not fit their type and got another one (--dry-run lists them)\n", plan.Fallbacks)
	}
	return writeConverted(c.OutOrStdout(), files, f.asJSON)
}

// open opens the model as a GGUF file. A folder becomes one first, beside the file
// that is written.
func (f *quantizeFlags) open(path string) (file *gguf.File, clean func(), err error) {
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		file, err = gguf.Open(path)
		return file, func() { file.Close() }, err
	}
	dir, err := os.MkdirTemp(f.beside(), ".quantize-")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	files, err := model.Convert(path, filepath.Join(dir, "float.gguf"), "keep", 0, nil)
	if err != nil {
		return nil, nil, err
	}
	file, err = gguf.Open(files[0])
	return file, func() {
		file.Close()
		os.RemoveAll(dir)
	}, err
}

// beside is the folder for files of the command's own: that of the output, if there is one.
func (f *quantizeFlags) beside() string {
	if f.dry {
		return ""
	}
	return filepath.Dir(f.out)
}

// turned writes the model of a file with its residual stream turned beside the file that
// is written, and opens that instead.
func (f *quantizeFlags) turned(file *gguf.File, clean func()) (*gguf.File, func(), error) {
	defer clean()
	dir, err := os.MkdirTemp(f.beside(), ".quantize-")
	if err != nil {
		return nil, func() {}, err
	}
	path := filepath.Join(dir, "turned.gguf")
	if err := compress.Rotate(file, f.rotate, path); err != nil {
		os.RemoveAll(dir)
		return nil, func() {}, err
	}
	to, err := gguf.Open(path)
	if err != nil {
		os.RemoveAll(dir)
		return nil, func() {}, err
	}
	return to, func() {
		to.Close()
		os.RemoveAll(dir)
	}, nil
}

// options reads the flags that say what becomes of tensors.
func (f *quantizeFlags) options(typ string) (func(progress func(done, total int64)) compress.Options, error) {
	if strings.EqualFold(typ, "auto") {
		typ = "Q4_K_S" // of what is not chosen
	}
	m, err := compress.ParseMixture(typ)
	if err != nil {
		return nil, err
	}
	o := compress.Options{Mixture: m, Pure: f.pure, KeepOutput: f.keepOutput, Requantize: f.again, Threads: f.threads}
	if o.Split, err = splitBytes(f.split); err != nil {
		return nil, err
	}
	if f.imatrix != "" {
		if o.Importance, err = compress.ReadImportance(f.imatrix); err != nil {
			return nil, err
		}
	}
	for flag, to := range map[string]**tensor.DType{f.head: &o.Output, f.embed: &o.Embedding} {
		if flag == "" {
			continue
		}
		t, err := tensor.ParseDType(flag)
		if err != nil {
			return nil, err
		}
		*to = &t
	}
	for _, text := range f.types {
		pattern, typ, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--tensor-type: expected PATTERN=TYPE, found %q", text)
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("--tensor-type %q: %w", text, err)
		}
		t, err := tensor.ParseDType(typ)
		if err != nil {
			return nil, fmt.Errorf("--tensor-type %q: %w", text, err)
		}
		o.Overrides = append(o.Overrides, compress.Override{Pattern: re, Type: t})
	}
	return func(progress func(done, total int64)) compress.Options {
		o.Progress = progress
		return o
	}, nil
}

// writePlan prints what would become of each tensor.
func (f *quantizeFlags) writePlan(w io.Writer, p *compress.Plan) error {
	before, after := p.Size()
	if f.asJSON {
		type row struct {
			Name   string   `json:"name"`
			Dims   []uint64 `json:"dims"`
			From   string   `json:"from"`
			To     string   `json:"to"`
			Bytes  uint64   `json:"bytes"`
			Before uint64   `json:"bytes_before"`
		}
		rows := []row{}
		for _, r := range p.Rows {
			rows = append(rows, row{r.Name, r.Dims, r.From.String(), r.To.String(), r.NewBytes, r.Bytes})
		}
		return writeJSON(w, map[string]any{"tensors": rows, "bytes": after, "bytes_before": before, "bits_per_weight": p.BitsPerWeight(), "fallbacks": p.Fallbacks})
	}
	for _, r := range p.Rows {
		fmt.Fprintf(w, "%-36s %-20s %-6s %-8s %s\n", r.Name, strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Dims), " ", " × "), "[]"), r.From, r.To, bytesText(int64(r.NewBytes)))
	}
	fmt.Fprintf(w, "%s, before %s; %.2f bits a weight\n", bytesText(int64(after)), bytesText(int64(before)), p.BitsPerWeight())
	if p.Fallbacks > 0 {
		fmt.Fprintf(w, "%d matrices have rows that do not fit their type and get another one\n", p.Fallbacks)
	}
	return nil
}
