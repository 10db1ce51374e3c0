package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/gguf"
)

// ReadControl reads a control vector for the model, in llama.cpp's GGUF form: it is an
// adapter that adds the vector direction.N to the rows behind layer N (the first one is
// number 0, and has none), for the layers from first to last; below 1 these are all.
func (m *Model) ReadControl(path string, first, last int) (*Adapter, error) {
	g, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	f := &adapterFile{path: path}
	layers := m.cfg.Layers
	if got := g.String("general.architecture", ""); got != "controlvector" {
		return nil, f.fault("general.architecture: expected \"controlvector\", found %q", got)
	}
	if hint := g.String("controlvector.model_hint", m.arch.name); hint != m.arch.name {
		return nil, f.fault("controlvector.model_hint: expected %q, the model's, found %q", m.arch.name, hint)
	}
	if m.net.Layers[0].AltUp != nil || len(m.net.Layers) != layers {
		return nil, f.fault("expected a model with one stream of rows and a layer for each of its network, found %s", m.arch.name)
	}
	if first < 1 {
		first = 1
	}
	if last < 1 {
		last = layers - 1
	}
	if first > last || last >= layers {
		return nil, f.fault("layers: expected a range within 1 to %d, found %d to %d", layers-1, first, last)
	}
	a := &Adapter{Path: path, net: m.net, norms: map[*nn.Linear][]*rowNorms{}, deltas: nn.Adapter{Deltas: map[*nn.Linear][]nn.LowRank{}, Steer: make([][]float32, layers)}}
	h := sha256.New()
	for _, t := range g.Tensors() {
		number, ok := strings.CutPrefix(t.Name, "direction.")
		layer, err := strconv.Atoi(number)
		if !ok || err != nil || layer < 1 || layer >= layers {
			return nil, f.fault("tensor %q: expected direction.N, N from 1 to %d, the model's last layer", t.Name, layers-1)
		}
		v, err := f.direction(g, t, m.cfg.Hidden)
		if err != nil {
			return nil, err
		}
		if layer >= first && layer <= last {
			a.Targets, a.Bytes, a.deltas.Steer[layer] = a.Targets+1, a.Bytes+4*int64(len(v)), v
			fmt.Fprintln(h, layer, v)
		}
	}
	if a.Targets == 0 {
		return nil, f.fault("expected directions for some of the layers %d to %d, found none", first, last)
	}
	a.ID = hex.EncodeToString(h.Sum(nil)[:16])
	return a, nil
}

// Steer has the rows of all runs changed as a control vector says, whatever adapters
// they have. It is called before the first step, and is part of what the model computes:
// see Fingerprint.
func (m *Model) Steer(a *Adapter) error {
	if !m.Has(a) || len(a.deltas.Deltas) > 0 {
		return fmt.Errorf("model: steer: expected control vectors of the model, found %d matrices or another model's", len(a.deltas.Deltas))
	}
	m.net.steer, m.steerID = a.deltas.Steer, a.ID
	return nil
}

// direction reads the vector of a layer.
func (f *adapterFile) direction(g *gguf.File, t gguf.TensorInfo, hidden int) ([]float32, error) {
	if len(t.Dims) != 1 || t.Dims[0] != uint64(hidden) {
		return nil, f.fault("tensor %q: expected shape [%d], the model's rows, found %v", t.Name, hidden, t.Dims)
	}
	mat, err := g.Mat(t.Name)
	if err != nil {
		return nil, err
	}
	if !isFloat(mat.Type) {
		return nil, f.fault("tensor %q: expected plain numbers, found %v", t.Name, mat.Type)
	}
	v := decodeAll(mat)
	for i, x := range v {
		if x-x != 0 {
			return nil, f.fault("tensor %q: number %d: expected a number, found %v", t.Name, i, x)
		}
	}
	return v, nil
}

// steered returns the sum of two adapters' vectors, times scales.
func steered(a [][]float32, x float32, b [][]float32, y float32) [][]float32 {
	if a == nil && b == nil {
		return nil
	}
	out := make([][]float32, max(len(a), len(b)))
	for i := range out {
		for _, from := range []struct {
			all   [][]float32
			scale float32
		}{{a, x}, {b, y}} {
			if i >= len(from.all) || from.all[i] == nil {
				continue
			}
			if out[i] == nil {
				out[i] = make([]float32, len(from.all[i]))
			}
			kernel.AddScaled(out[i], from.all[i], from.scale)
		}
	}
	return out
}
