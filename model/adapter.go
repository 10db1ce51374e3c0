package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/tensor"
)

// Adapter is a fine-tune of a model: low-rank matrices that are added to some of its
// weights, for those runs of a step that have it. It is for the model that has read it.
// Its memory is the garbage collector's: a request that is on its way keeps it, whoever
// else has let it go.
type Adapter struct {
	Path    string
	Rank    int    // the largest of its matrices
	Targets int    // matrices that it changes
	Bytes   int64  // of memory
	ID      string // tells what it computes from what any other does

	deltas nn.Adapter
	norms  map[*nn.Linear][]*rowNorms // of deltas, nil for those without a magnitude
	net    *Net                       // whose matrices it changes
}

// Run returns what a run of a step has for its rows to be changed, nil for a nil
// Adapter.
func (a *Adapter) Run() *nn.Adapter {
	if a == nil {
		return nil
	}
	return &a.deltas
}

// Has reports whether an adapter, nil for none, is for the model.
func (m *Model) Has(a *Adapter) bool { return a == nil || a.net == m.net }

// Scaled returns the adapter with what it adds times scale, which is nothing for 0. It
// shares a's memory.
func (a *Adapter) Scaled(scale float32) *Adapter {
	if scale == 1 {
		return a
	}
	b := &Adapter{Path: a.Path, Rank: a.Rank, net: a.net, ID: fmt.Sprintf("%s:%g", a.ID, scale), norms: a.norms, deltas: nn.Adapter{Deltas: map[*nn.Linear][]nn.LowRank{}}}
	for l, ds := range a.deltas.Deltas {
		if scale == 0 {
			break
		}
		for i, d := range ds {
			d.Scale *= scale
			if n := a.norms[l][i]; n != nil {
				d.Gain = n.gain(d.Scale)
			}
			b.deltas.Deltas[l] = append(b.deltas.Deltas[l], d)
		}
	}
	b.Targets = len(b.deltas.Deltas)
	if scale != 0 {
		b.deltas.Steer = steered(a.deltas.Steer, scale, nil, 0)
	}
	return b
}

// With returns an adapter that adds what a adds and then what b adds, either of which
// may be nil. It shares their memory.
func (a *Adapter) With(b *Adapter) *Adapter {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := &Adapter{Path: a.Path, net: a.net, Rank: max(a.Rank, b.Rank), ID: a.ID + "+" + b.ID, norms: map[*nn.Linear][]*rowNorms{}, deltas: nn.Adapter{Deltas: map[*nn.Linear][]nn.LowRank{}}}
	for _, from := range []*Adapter{a, b} {
		for l, ds := range from.deltas.Deltas {
			sum.deltas.Deltas[l] = append(sum.deltas.Deltas[l], ds...)
			sum.norms[l] = append(sum.norms[l], from.norms[l]...)
		}
	}
	sum.Targets = len(sum.deltas.Deltas)
	sum.deltas.Steer = steered(a.deltas.Steer, 1, b.deltas.Steer, 1)
	return sum
}

// lowRank are the two matrices that change a weight, as an adapter's file has them.
type lowRank struct {
	down, up         tensor.Mat // [rank][in], [out][rank]
	size             tensor.Mat // [1][out], the length of each row of the changed weight, if sizeName is set
	downName, upName string     // none: it is not there
	sizeName         string
	scale            float32
}

// adapterFile is an adapter before it is known what its weights are in the model.
type adapterFile struct {
	path   string
	arch   string // that it says it is for, "" if it does not say
	hf     bool   // weights have the names of a checkpoint, those of a GGUF file otherwise
	pairs  map[string]*lowRank
	settle func(target string, p *lowRank) error // sets its scale, and checks its rank
	close  func() error
}

// pair returns the matrices of a target, which are there afterwards.
func (f *adapterFile) pair(target string) *lowRank {
	p := f.pairs[target]
	if p == nil {
		p = &lowRank{}
		f.pairs[target] = p
	}
	return p
}

func (f *adapterFile) fault(format string, args ...any) error {
	return fmt.Errorf("model: adapter %s: "+format, append([]any{f.path}, args...)...)
}

// ReadAdapter reads the adapter at path for the model: a folder with
// adapter_config.json and adapter_model.safetensors, as Hugging Face's PEFT writes it,
// that safetensors file, or a GGUF file of llama.cpp's converter. An adapter that is
// for another model, has numbers that are none, or computes something else than LoRA
// is refused by the name of what is wrong. It may be called while the model computes.
func (m *Model) ReadAdapter(path string) (_ *Adapter, err error) {
	f, err := m.openAdapter(path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	a := &Adapter{Path: path, net: m.net, norms: map[*nn.Linear][]*rowNorms{}, deltas: nn.Adapter{Deltas: map[*nn.Linear][]nn.LowRank{}}}
	if err := m.attach(a, f); err != nil {
		return nil, err
	}
	a.ID, a.Targets = f.identity(), len(a.deltas.Deltas)
	return a, nil
}

// openAdapter opens an adapter for the model, and looks at it without the model's
// weights.
func (m *Model) openAdapter(path string) (_ *adapterFile, err error) {
	open := openPEFT
	if strings.HasSuffix(path, ".gguf") {
		open = openGGUFAdapter
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.arch != "" && f.arch != m.arch.name {
		return nil, f.fault("general.architecture: expected %q, the model's, found %q", m.arch.name, f.arch)
	}
	if len(f.pairs) == 0 {
		return nil, f.fault("expected weights, found none")
	}
	for _, target := range slices.Sorted(maps.Keys(f.pairs)) {
		if err := f.check(target); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// check looks at the matrices of a target without the model.
func (f *adapterFile) check(target string) error {
	p := f.pairs[target]
	switch {
	case p.downName == "" || p.upName == "":
		return f.fault("%s: expected two matrices, found only %q", target, p.downName+p.upName)
	case p.down.Rows != p.up.Cols:
		return f.fault("tensor %q: expected %d columns, the rank of %q, found %d", p.upName, p.down.Rows, p.downName, p.up.Cols)
	}
	if err := f.settle(target, p); err != nil {
		return err
	}
	if v := float64(p.scale); math.IsNaN(v) || math.IsInf(v, 0) {
		return f.fault("%s: scale: expected a number, found %v", target, v)
	}
	for _, x := range []struct {
		m    *tensor.Mat
		name string
	}{{&p.down, p.downName}, {&p.up, p.upName}, {&p.size, p.sizeName}} {
		if x.name == "" {
			continue
		}
		if !x.m.Type.CanDecode() {
			return f.fault("tensor %q: element type %v cannot be read", x.name, x.m.Type)
		}
		row := make([]float32, x.m.Cols)
		for r := range x.m.Rows {
			x.m.DecodeRow(row, r)
			for c, v := range row {
				if v-v != 0 {
					return f.fault("tensor %q: row %d, column %d: expected a number, found %v", x.name, r, c, v)
				}
			}
		}
		*x.m = plainMat(*x.m)
	}
	return nil
}

// plainMat returns m with elements of a type that has no blocks.
func plainMat(m tensor.Mat) tensor.Mat {
	switch m.Type {
	case tensor.F32, tensor.F16, tensor.BF16:
		return m
	}
	out := tensor.Mat{Type: tensor.F32, Rows: m.Rows, Cols: m.Cols, Data: make([]byte, 4*m.Rows*m.Cols)}
	row := make([]float32, m.Cols)
	for r := range m.Rows {
		m.DecodeRow(row, r)
		for c, v := range row {
			binary.LittleEndian.PutUint32(out.Data[4*(r*m.Cols+c):], math.Float32bits(v))
		}
	}
	return out
}

// identity is a hash of all that is added.
func (f *adapterFile) identity() string {
	h := sha256.New()
	for _, target := range slices.Sorted(maps.Keys(f.pairs)) {
		p := f.pairs[target]
		fmt.Fprintln(h, target, p.scale, p.down.Type, p.down.Rows, p.down.Cols, p.up.Type, p.up.Rows)
		h.Write(p.down.Data)
		h.Write(p.up.Data)
		h.Write(p.size.Data)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// unadapted are the parts of a layer whose products are not those of nn's Linear,
// where deltas are added: experts, and what latent attention has absorbed.
var unadapted = []string{"_exps", "ffn_down_shexp", "attn_k_b", "attn_v_b", "attn_kv_b"}

// attach gives the model's matrices their deltas.
func (m *Model) attach(a *Adapter, f *adapterFile) error {
	memory := &adapterMemory{}
	memory.reserve(f.room())
	linears := map[*kernel.Packed]*nn.Linear{}
	for r := range m.net.Regions() {
		for _, l := range r.Mats {
			linears[l.W] = l
		}
	}
	names := []string{}
	parts := map[string][]*kernel.Packed{} // of matrices that are used in parts, in order
	for _, p := range m.w.packed {
		if parts[p.name] == nil {
			names = append(names, p.name)
		}
		parts[p.name] = append(parts[p.name], p.Packed)
	}
	return m.eachTarget(f, names, func(name string, t *adapterTarget, p *lowRank, up tensor.Mat) error {
		rows := 0
		for _, w := range parts[name] {
			rows += w.Rows
		}
		if err := f.fits(name, p, up, rows, parts[name][0].Cols); err != nil {
			return err
		}
		if err := a.add(f, memory, p, up, parts[name], linears); err != nil {
			return err
		}
		if p.sizeName != "" {
			return m.measure(a, f, t, p, up, parts[name], linears)
		}
		return nil
	})
}

// fits refuses matrices for a weight of another shape.
func (f *adapterFile) fits(name string, p *lowRank, up tensor.Mat, rows, cols int) error {
	if p.down.Cols != cols {
		return f.fault("tensor %q: expected %d columns, as the model's %s has, found %d", p.downName, cols, name, p.down.Cols)
	} else if up.Rows != rows {
		return f.fault("tensor %q: expected %d rows, as the model's %s has, found %d", p.upName, rows, name, up.Rows)
	}
	return nil
}

// eachTarget calls do for the targets of an adapter, with the weights of the model
// that they change, of those that are named, and the matrix up in their order.
func (m *Model) eachTarget(f *adapterFile, names []string, do func(name string, t *adapterTarget, p *lowRank, up tensor.Mat) error) error {
	at := m.targets(f, names)
	used := map[string]bool{}
	for _, name := range names {
		t, ok := at[name]
		if !ok {
			continue
		}
		p := f.pairs[t.target]
		if slices.ContainsFunc(unadapted, func(s string) bool { return strings.Contains(name, s) }) || name == "token_embd" {
			return f.fault("tensor %q: expected a matrix that adapters can change here, found %s", p.upName, name)
		}
		used[t.target] = true
		up, err := t.reorder(p)
		if err != nil {
			return f.fault("tensor %q: %w", p.upName, err)
		}
		if err := do(name, &t, p, up); err != nil {
			return err
		}
	}
	for _, target := range slices.Sorted(maps.Keys(f.pairs)) {
		if !used[target] {
			return f.fault("tensor %q: expected the name of a matrix of this model (%s, %d layers), found none of that name", f.pairs[target].downName, m.arch.name, m.cfg.Layers)
		}
	}
	return nil
}

// add packs the matrices of a target, of which the model has the rows in parts.
func (a *Adapter) add(f *adapterFile, memory *adapterMemory, p *lowRank, up tensor.Mat, parts []*kernel.Packed, linears map[*kernel.Packed]*nn.Linear) error {
	down, err := a.pack(memory, p.down, kernel.NewPacked)
	if err != nil {
		return f.fault("tensor %q: %w", p.downName, err)
	}
	a.Rank = max(a.Rank, p.down.Rows)
	first, size := 0, up.Type.RowBytes(up.Cols)
	for _, w := range parts {
		l := linears[w]
		if l == nil {
			return f.fault("tensor %q: expected a matrix that adapters can change here", p.upName)
		}
		part := up
		part.Rows, part.Data = w.Rows, up.Data[first*size:(first+w.Rows)*size]
		packed, err := a.pack(memory, part, kernel.NewAdded)
		if err != nil {
			return f.fault("tensor %q: %w", p.upName, err)
		}
		a.deltas.Deltas[l] = append(a.deltas.Deltas[l], nn.LowRank{Down: down, Up: packed, Scale: p.scale})
		a.norms[l] = append(a.norms[l], nil)
		first += w.Rows
	}
	return nil
}

// adapterTarget is where an adapter has the deltas of a weight.
type adapterTarget struct {
	target string
	weight string                               // by the name that GGUF has
	fix    func(tensor.Mat) (tensor.Mat, error) // of the weight's rows; nil for none
}

// turns reports whether the weight lies [in][out], of so many outputs.
func (t *adapterTarget) turns(rows int) bool {
	got, err := t.fix(tensor.Mat{Type: tensor.F32, Rows: rows, Cols: 1, Data: make([]byte, 4*rows)})
	return err == nil && got.Rows == 1 && got.Cols == rows && rows > 1
}

// reorder returns the matrix up of p with its rows in the order of the model's.
func (t *adapterTarget) reorder(p *lowRank) (tensor.Mat, error) {
	if t.fix == nil {
		return p.up, nil
	}
	// Weights of GPT-2 lie [in][out].
	if t.turns(p.up.Rows) {
		turned, err := transpose(p.up)
		if err != nil {
			return turned, err
		}
		return t.fix(turned)
	}
	up, err := t.fix(p.up)
	if err == nil && up.Cols != p.up.Cols {
		err = fmt.Errorf("expected a matrix that adapters can change here: its columns lie in another order")
	}
	return up, err
}

// targets says which weights of the model, by the names that it has them packed
// under, the adapter changes.
func (m *Model) targets(f *adapterFile, names []string) map[string]adapterTarget {
	out := map[string]adapterTarget{}
	if !f.hf {
		for _, name := range names {
			for _, full := range append((&ggufSource{aliases: m.arch.aliases}).names(name+".weight"), name+".weight") {
				if f.pairs[full] != nil {
					out[name] = adapterTarget{target: full, weight: name + ".weight"}
				}
			}
		}
		return out
	}
	has := map[string]bool{}
	for target := range f.pairs {
		has[target] = true
	}
	cfg := m.cfg
	for _, root := range hfRoots {
		embed := root + m.arch.names.names["token_embd"] + ".weight" // what tells the root
		mine := maps.Clone(has)
		mine[embed] = true
		for _, name := range names {
			if t := m.arch.names.at(name+".weight", mine, &cfg); t.found && !t.stack && has[t.names[0]] {
				out[name] = adapterTarget{target: t.names[0], weight: name + ".weight", fix: t.fix}
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return out
}
