// Package quant measures what methods of quantization cost on one float model: a table
// of methods and bits with divergence, perplexity, bytes and speed. A row that was not
// measured is empty.
package quant

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"ridge/compress"
	"ridge/engine"
	"ridge/measure/eval"
	"ridge/model"
	"ridge/weights/gguf"
)

// Config says what is measured.
type Config struct {
	// Model is the path of a float model, a GGUF file.
	Model string
	// Calibration is what methods see, Text what is measured; they must be different.
	Calibration, Text []int32
	Window, Threads   int
	// Dir keeps the rows that were measured, and files while they are; a run with the
	// same Dir and the same Config goes on where the last one ended.
	Dir string
	// Speed has files of kernels timed.
	Speed bool
	// Only, if not nil, says which rows are measured; the others stay empty.
	Only *regexp.Regexp
	// Progress, if not nil, is told how many rows are done.
	Progress func(done, total int)
}

// Row is a measured row, or an empty one. Bytes are of the matrices of layers: embedding
// and output stay as they are in all rows.
type Row struct {
	Method  string `json:"method"`
	Grid    string `json:"grid"`
	Against string `json:"against,omitempty"`
	// Reference says that no kernel runs it: values are floats, bytes are counted.
	Reference bool `json:"reference"`

	Measured *Measured `json:"measured"`
	Key      string    `json:"key,omitempty"`
}

// Measured is what a row's model did on the text.
type Measured struct {
	Bytes      int64           `json:"bytes"`
	Bits       float64         `json:"bits"` // a weight
	Perplexity float64         `json:"perplexity"`
	KL         eval.Difference `json:"kl"`
	// Paired is the difference from the row that it is compared with.
	Paired *eval.Paired `json:"paired,omitempty"`
	// Prefill and Decode are tokens a second, 0 if they were not measured.
	Prefill float64 `json:"prefill,omitempty"`
	Decode  float64 `json:"decode,omitempty"`
}

// run is a Config at work.
type run struct {
	Config
	key   string // of all rows
	float *model.Model
	base  *engine.Engine
	files map[string]made
}

// made is a file and what its matrices take.
type made struct {
	path  string
	bytes int64
	bits  float64
}

// Measure measures the rows and returns all, in the order of Recipes.
func Measure(ctx context.Context, cfg Config) (rows []Row, err error) {
	r := &run{Config: cfg, files: map[string]made{}}
	if r.key, err = cfg.fingerprint(); err != nil {
		return nil, err
	}
	known, err := r.kept()
	if err != nil {
		return nil, err
	}
	for _, c := range Recipes() {
		rows = append(rows, Row{Method: c.Method, Grid: c.Grid, Against: c.Against, Reference: c.counted, Measured: known[r.keyOf(c)]})
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(cfg.Dir, ".files-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	defer func() {
		if r.float != nil {
			err = errors.Join(err, r.base.Close(), r.float.Close())
		}
	}()
	for i, c := range Recipes() {
		if rows[i].Measured == nil && (cfg.Only == nil || cfg.Only.MatchString(c.Method+" "+c.Grid)) {
			m, err := r.measure(ctx, work, c)
			if err != nil {
				return nil, fmt.Errorf("quant: %s, %s: %w", c.Method, c.Grid, err)
			}
			rows[i].Measured = m
			if err := r.keep(Row{Key: r.keyOf(c), Method: c.Method, Grid: c.Grid, Against: c.Against, Reference: c.counted, Measured: m}); err != nil {
				return nil, err
			}
		}
		if cfg.Progress != nil {
			cfg.Progress(i+1, len(rows))
		}
	}
	return rows, nil
}

// fingerprint is of the model and the texts.
func (c *Config) fingerprint() (string, error) {
	if len(c.Text) < 2*c.Window || c.Window < 2 {
		return "", fmt.Errorf("quant: text: expected two windows of %d tokens at least, found %d tokens", c.Window, len(c.Text))
	}
	f, err := gguf.Open(c.Model)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for _, t := range f.Tensors() {
		h.Write([]byte(t.Name))
		h.Write(f.Data(t))
		f.Release(f.Data(t))
	}
	for _, ids := range [][]int32{c.Calibration, c.Text, {int32(c.Window)}} {
		binary.Write(h, binary.LittleEndian, int64(len(ids)))
		binary.Write(h, binary.LittleEndian, ids)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), f.Check()
}

// keyOf is of a row: what changes its figures.
func (r *run) keyOf(c Recipe) string {
	s := fmt.Sprintf("%s %s %s %s %s %d speed=%v", r.key, c.Method, c.Grid, c.pass.Settings(), c.Against, c.source, r.Speed && !c.counted)
	if c.coarse != nil {
		s += fmt.Sprintf(" %+v", *c.coarse)
	}
	return s
}

func (r *run) rowsFile() string { return filepath.Join(r.Dir, "rows.jsonl") }

// kept reads the rows that were measured. A last line that was cut off is left out.
func (r *run) kept() (map[string]*Measured, error) {
	known := map[string]*Measured{}
	f, err := os.Open(r.rowsFile())
	if errors.Is(err, os.ErrNotExist) {
		return known, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var row Row
		if json.Unmarshal(in.Bytes(), &row) == nil && row.Key != "" {
			known[row.Key] = row.Measured
		}
	}
	return known, nil
}

// keep adds a row to those that were measured. It begins a line, after one that was cut
// off too.
func (r *run) keep(row Row) error {
	b, err := json.Marshal(row)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.rowsFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("\n" + string(b) + "\n"))
	return errors.Join(err, f.Sync(), f.Close())
}

// open opens the model of a file, whose rows are rounded as coarse says.
func (r *run) open(path string, coarse *coarse) (*model.Model, *engine.Engine, error) {
	o := model.DefaultOptions()
	o.Workers, o.Act, o.MaxContext = r.Threads, model.ActInt16, max(r.Window, 1024)
	m, err := model.Open(path, o)
	if err != nil {
		return nil, nil, err
	}
	if coarse != nil {
		err = m.SetCoarse(coarse.bits, coarse.apart)
	}
	var e *engine.Engine
	if err == nil {
		e, err = engine.New(m, engine.Options{})
	}
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, e, nil
}

// measure makes the file of a recipe and compares it.
func (r *run) measure(ctx context.Context, dir string, c Recipe) (*Measured, error) {
	if r.float == nil {
		var err error
		if r.float, r.base, err = r.open(r.Model, nil); err != nil {
			return nil, err
		}
	}
	var pairs []Recipe
	for _, x := range Recipes() {
		if c.Against != "" && x.Grid == c.Grid && x.Method == c.Against {
			pairs = append(pairs, x)
		}
	}
	pairs = append(pairs, c)
	var engines []*engine.Engine
	var last made
	for _, x := range pairs {
		var err error
		if last, err = r.file(ctx, dir, x); err != nil {
			return nil, err
		}
		m, e, err := r.open(last.path, x.coarse)
		if err != nil {
			return nil, err
		}
		defer func() { e.Close(); m.Close() }()
		engines = append(engines, e)
	}
	each, diffs, err := eval.CompareAll(ctx, r.base, engines, r.Text, eval.Windows{Context: r.Window, BOS: -1})
	if err != nil {
		return nil, err
	}
	d := each[len(each)-1]
	m := &Measured{Bytes: last.bytes, Bits: last.bits, Perplexity: d.Model.Perplexity, KL: d.KL}
	if len(diffs) > 0 {
		m.Paired = &diffs[0]
	}
	if r.Speed && !c.counted {
		m.Prefill, m.Decode, err = speed(ctx, engines[len(engines)-1], r.Text)
	}
	return m, err
}

// own leaves embedding and output as they are.
var own = regexp.MustCompile(`^(token_embd|output)\.weight$`)

// file makes the file of a recipe, if it is not there.
func (r *run) file(ctx context.Context, dir string, c Recipe) (made, error) {
	name := strings.Map(func(c rune) rune {
		if c == ' ' || c == ',' || c == '+' {
			return '-'
		}
		return c
	}, c.Method+"-"+c.Grid)
	if m, ok := r.files[name]; ok {
		return m, nil
	}
	from, err := r.source(ctx, dir, c.source)
	if err != nil {
		return made{}, err
	}
	m := made{path: filepath.Join(dir, name+".gguf")}
	var weights int64
	m.bytes, weights, err = r.write(ctx, from, m.path, c)
	m.bits = 8 * float64(m.bytes) / float64(max(weights, 1))
	r.files[name] = m
	return m, err
}

// source makes the float model that is rounded, if it is not there.
func (r *run) source(ctx context.Context, dir string, s source) (string, error) {
	path := filepath.Join(dir, fmt.Sprintf("source-%d.gguf", s))
	if s == plainSource {
		return r.Model, nil
	} else if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if s == outlierSource {
		p := Recipe{typ: "F32", pass: compress.Outliers{Columns: planted, Factor: plantedBy}}
		_, _, err := r.write(ctx, r.Model, path, p)
		return path, err
	}
	from, err := r.source(ctx, dir, map[source]source{rotatedSource: plainSource, rotatedOutlierSource: outlierSource}[s])
	if err != nil {
		return "", err
	}
	f, err := gguf.Open(from)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return path, compress.Rotate(f, seed, path)
}

// write quantizes the model of one file into another and returns what the matrices of its
// layers take, and their weights.
func (r *run) write(ctx context.Context, from, to string, c Recipe) (bytes, weights int64, err error) {
	f, err := gguf.Open(from)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	name := c.typ
	if name == "Q3_K" {
		name += "_S" // a mixture whose main type it is
	}
	mix, err := compress.ParseMixture(name)
	if err != nil {
		return 0, 0, err
	}
	o := compress.Options{Mixture: mix, Pure: true, Threads: r.Threads}
	embed, ok := f.Tensor("token_embd.weight")
	if !ok {
		return 0, 0, errors.New("expected a tensor token_embd.weight, found none")
	}
	o.Overrides = []compress.Override{{Pattern: own, Type: embed.Type}}
	m, err := model.Open(from, model.Options{Workers: r.Threads})
	if err != nil {
		return 0, 0, err
	}
	defer m.Close()
	o.Method = &compress.Method{Pass: c.pass, Model: m, Tokens: r.Calibration, Chunk: min(256, len(r.Calibration)), Report: func(x compress.Rounded) { bytes += int64(x.Bytes) }}
	plan, err := compress.NewPlan(f, o)
	if err != nil {
		return 0, 0, err
	}
	for _, row := range plan.Rows {
		if len(row.Dims) == 2 && !own.MatchString(row.Name) {
			weights += int64(row.Dims[0] * row.Dims[1])
		}
	}
	_, err = plan.Write(ctx, to)
	return bytes, weights, err
}
