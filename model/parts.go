package model

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// parts are what sentence-transformers has behind a model: modules.json lists them,
// each in a folder of its own.
type parts struct {
	pooling Pooling
	prompts map[string]string // by name
	prompt  string            // the name of the one that is used if none is asked for
	dense   []densePlace
	judge   *judge // nil for none
	rerank  string // see Defaults.Rerank
}

// densePlace is where a matrix for embeddings lies.
type densePlace struct {
	dir        string
	tanh, bias bool
}

// densePart begins the names of matrices for embeddings, as GGUF has them: the
// first is dense_2, since pooling is the second module.
const densePart = "dense_"

func denseName(i int) string { return fmt.Sprint(densePart, i+2) }

// hfParts reads the parts of a directory. One that changes embeddings in a way that
// is not known here takes the place of the pooling, by its name.
func hfParts(dir string) (p parts, err error) {
	var modules []struct{ Path, Type string }
	found, err := readFile(dir, "modules.json", &modules)
	if err != nil {
		return p, err
	}
	if err := p.readPrompts(dir); err != nil {
		return p, err
	}
	at := "1_Pooling"
	if found {
		at = ""
	}
	for _, m := range modules {
		kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]
		if !filepath.IsLocal(m.Path) && m.Path != "" {
			return p, fmt.Errorf("model: %s: modules.json: path: expected a folder in it, found %q", dir, m.Path)
		}
		switch kind {
		case "Transformer", "Normalize":
		case "Pooling":
			if at = m.Path; at == "" {
				return p, fmt.Errorf("model: %s: modules.json: path: expected a folder in it, found %q", dir, m.Path)
			}
		case "Dense":
			if err := p.readDense(dir, m.Path); err != nil {
				return p, err
			}
		case "LogitScore":
			if err := p.readJudge(dir, m.Path); err != nil {
				return p, err
			}
		default:
			p.pooling = Pooling(kind)
			return p, nil
		}
	}
	if !found {
		err = p.nameJudge(dir)
	}
	if at != "" && p.judge == nil && err == nil {
		p.pooling, err = hfPooling(filepath.Join(dir, at))
	}
	return p, err
}

// readPrompts reads config_sentence_transformers.json.
func (p *parts) readPrompts(dir string) error {
	const name = "config_sentence_transformers.json"
	var c struct {
		Prompts map[string]string `json:"prompts"`
		Default *string           `json:"default_prompt_name"`
	}
	if _, err := readFile(dir, name, &c); err != nil {
		return err
	}
	if p.prompts = c.Prompts; c.Default == nil {
		return nil
	}
	p.prompt = *c.Default
	if _, ok := p.prompts[p.prompt]; !ok {
		return fmt.Errorf("model: %s: default_prompt_name: expected one of %q, found %q", filepath.Join(dir, name), slices.Sorted(maps.Keys(p.prompts)), p.prompt)
	}
	return nil
}

// readDense reads the description of a matrix in a folder of dir.
func (p *parts) readDense(dir, path string) error {
	var c struct {
		Bias       *bool  `json:"bias"`
		Activation string `json:"activation_function"`
	}
	at := filepath.Join(dir, path)
	found, err := readFile(at, "config.json", &c)
	if err != nil {
		return err
	} else if !found {
		return fmt.Errorf("model: %s: expected its config.json, found none", at)
	}
	d := densePlace{dir: at, bias: c.Bias == nil || *c.Bias}
	switch act := c.Activation[strings.LastIndexByte(c.Activation, '.')+1:]; act {
	case "Identity", "":
	case "Tanh":
		d.tanh = true
	default:
		return fmt.Errorf("model: %s: activation_function: expected Identity or Tanh, found %q", filepath.Join(at, "config.json"), c.Activation)
	}
	p.dense = append(p.dense, d)
	return nil
}

// present says which of the matrices' weights there are. A GGUF file does not say
// it.
func (p *parts) present(d *description) {
	if p.judge != nil {
		d.must(classWeight)
	}
	for i, dense := range p.dense {
		d.must(denseName(i) + ".weight")
		if dense.bias {
			d.must(denseName(i) + ".bias")
		}
	}
}

// activate gives matrices their functions, which only a directory says.
func (p *parts) activate(dense []dense) []dense {
	for i := range p.dense {
		dense[i].tanh = p.dense[i].tanh
	}
	return dense
}

// besideFiles are the files of a model and those of its parts.
type besideFiles struct {
	hfFiles
	more  []*safetensors.File
	names map[string]besideName // as denseName has them
}

type besideName struct {
	file int
	name string
}

// beside joins the files of parts, in folders of their own, to those of the model.
func (p *parts) beside(files hfFiles) (hfFiles, error) {
	if len(p.dense) == 0 {
		return files, nil
	}
	b := &besideFiles{hfFiles: files, names: map[string]besideName{}}
	for i, d := range p.dense {
		f, err := safetensors.Open(d.dir)
		if err != nil {
			b.closeMore()
			return nil, err
		}
		b.more = append(b.more, f)
		for _, t := range f.Tensors() {
			short, ok := strings.CutPrefix(t.Name, "linear.")
			if !ok {
				b.closeMore()
				return nil, fmt.Errorf("model: %s: expected linear.weight and linear.bias, found tensor %q", d.dir, t.Name)
			}
			b.names[denseName(i)+"."+short] = besideName{i, t.Name}
		}
	}
	return b, nil
}

func (b *besideFiles) Tensors() []safetensors.TensorInfo {
	all := b.hfFiles.Tensors()
	for _, name := range slices.Sorted(maps.Keys(b.names)) {
		n := b.names[name]
		t, _ := b.more[n.file].Tensor(n.name)
		t.Name = name
		all = append(all, t)
	}
	return all
}

func (b *besideFiles) Mat(name string) (tensor.Mat, error) {
	if n, ok := b.names[name]; ok {
		return b.more[n.file].Mat(n.name)
	}
	return b.hfFiles.Mat(name)
}

func (b *besideFiles) Check() error {
	err := b.hfFiles.Check()
	for _, f := range b.more {
		if err == nil {
			err = f.Check()
		}
	}
	return err
}

func (b *besideFiles) ID() (string, bool) {
	id, settled := b.hfFiles.ID()
	for _, f := range b.more {
		more, ok := f.ID()
		id, settled = id+"+"+more, settled && ok
	}
	return id, settled
}

func (b *besideFiles) Close() error {
	b.closeMore()
	return b.hfFiles.Close()
}

func (b *besideFiles) closeMore() {
	for _, f := range b.more {
		f.Close()
	}
}

// buildDense builds the matrices that embeddings go through.
func (b *builder) buildDense(net *Net) {
	in := b.c.Hidden
	for i := 0; ; i++ {
		name := denseName(i)
		m, ok := b.optional(name+".weight", 0, 0)
		if !ok {
			return
		}
		if m.Cols != in {
			b.fail("tensor %q: expected rows of %d, found %d x %d", b.spelling(name+".weight"), in, m.Rows, m.Cols)
			return
		}
		var l dense
		l.linear.W, l.linear.Bias = b.pack(name, m), b.bias(name+".bias", m.Rows)
		net.Dense, in = append(net.Dense, l), m.Rows
	}
}

// hfPooling reads the configuration in the folder of a pooling.
func hfPooling(dir string) (Pooling, error) {
	var c map[string]any
	if found, err := readFile(dir, "config.json", &c); !found || err != nil {
		return "", err
	}
	if with, ok := c["include_prompt"].(bool); ok && !with {
		return "without the prompt", nil
	}
	var modes []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if mode, ok := strings.CutPrefix(key, "pooling_mode_"); ok && c[key] == true {
			modes = append(modes, mode)
		}
	}
	if mode, ok := c["pooling_mode"].(string); ok {
		modes = []string{mode}
	}
	switch all := strings.Join(modes, "+"); all {
	case "mean_tokens", "mean", "mean_sqrt_len_tokens": // the same direction
		return PoolingMean, nil
	case "cls_token", "cls":
		return PoolingCLS, nil
	case "lasttoken", "last_token":
		return PoolingLast, nil
	default:
		return Pooling(all), nil
	}
}
