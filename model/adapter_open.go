package model

import (
	"strings"

	"ridge/weights/gguf"
	"ridge/weights/safetensors"
)

// peftRoot begins the names of an adapter's weights.
const peftRoot = "base_model.model."

// openPEFT opens an adapter of Hugging Face's PEFT.
func openPEFT(path string) (*adapterFile, error) {
	c, file, err := readPEFT(path)
	if err != nil {
		return nil, err
	}
	st, err := safetensors.Open(file)
	if err != nil {
		return nil, err
	}
	f := &adapterFile{path: path, hf: true, pairs: map[string]*lowRank{}, close: st.Close}
	f.settle = func(target string, p *lowRank) error { return c.settle(f, target, p) }
	for _, t := range st.Tensors() {
		name, ok := strings.CutPrefix(t.Name, peftRoot)
		module, part := name, ""
		for _, kind := range []string{".lora_A", ".lora_B", ".lora_magnitude_vector"} {
			for _, end := range []string{"", ".weight", ".default", ".default.weight"} {
				if s, found := strings.CutSuffix(name, kind+end); found && (end != "" || kind == ".lora_magnitude_vector") {
					module, part = s, kind
				}
			}
		}
		if !ok || part == "" {
			st.Close()
			return nil, f.fault("tensor %q: expected a name like %sNAME.lora_A.weight: no other weights are taken from an adapter", t.Name, peftRoot)
		}
		mat, err := st.Mat(t.Name)
		if err != nil {
			st.Close()
			return nil, err
		}
		p, dims := f.pair(module+".weight"), 2
		switch part {
		case ".lora_A":
			p.down, p.downName = mat, t.Name
		case ".lora_B":
			p.up, p.upName = mat, t.Name
		default:
			p.size, p.sizeName, dims = mat, t.Name, 1
		}
		if len(t.Shape) != dims {
			st.Close()
			return nil, f.fault("tensor %q: expected %d dimensions, found shape %v", t.Name, dims, t.Shape)
		}
	}
	return f, nil
}

// openGGUFAdapter opens an adapter of llama.cpp's converter.
func openGGUFAdapter(path string) (*adapterFile, error) {
	g, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	f := &adapterFile{path: path, pairs: map[string]*lowRank{}, close: g.Close}
	if err := f.readGGUF(g); err != nil {
		g.Close()
		return nil, err
	}
	return f, nil
}

func (f *adapterFile) readGGUF(g *gguf.File) error {
	for _, want := range [][2]string{{"general.type", "adapter"}, {"adapter.type", "lora"}} {
		if got := g.String(want[0], ""); got != want[1] {
			return f.fault("metadata %q: expected %q, found %q", want[0], want[1], got)
		}
	}
	f.arch = g.String("general.architecture", "")
	alpha := float32(g.Float("adapter.lora.alpha", 0))
	f.settle = func(_ string, p *lowRank) error {
		p.scale = 1
		if alpha != 0 {
			p.scale = alpha / float32(p.down.Rows)
		}
		return nil
	}
	for _, t := range g.Tensors() {
		down, isDown := strings.CutSuffix(t.Name, ".lora_a")
		up, isUp := strings.CutSuffix(t.Name, ".lora_b")
		if !isDown && !isUp || len(t.Dims) != 2 {
			return f.fault("tensor %q: expected a matrix with a name like blk.N.attn_q.weight.lora_a: no other weights are taken from an adapter", t.Name)
		}
		mat, err := g.Mat(t.Name)
		if err != nil {
			return err
		}
		if isDown {
			p := f.pair(down)
			p.down, p.downName = mat, t.Name
		} else {
			p := f.pair(up)
			p.up, p.upName = mat, t.Name
		}
	}
	return nil
}
