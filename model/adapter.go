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
	"unsafe"

	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/gguf"
	"ridge/weights/safetensors"
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
	net    *Net // whose matrices it changes
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

// Scaled returns the adapter with what it adds times scale. It shares a's memory.
func (a *Adapter) Scaled(scale float32) *Adapter {
	if scale == 1 {
		return a
	}
	b := &Adapter{Path: a.Path, Rank: a.Rank, net: a.net, ID: fmt.Sprintf("%s:%g", a.ID, scale), deltas: nn.Adapter{Deltas: map[*nn.Linear][]nn.LowRank{}}}
	for l, ds := range a.deltas.Deltas {
		if scale == 0 {
			break
		}
		for _, d := range ds {
			d.Scale *= scale
			b.deltas.Deltas[l] = append(b.deltas.Deltas[l], d)
		}
	}
	b.Targets = len(b.deltas.Deltas)
	return b
}

// With returns an adapter that adds what a adds and then what b adds, either of which
// may be nil. It shares their memory.
func (a *Adapter) With(b *Adapter) *Adapter {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := &Adapter{Path: a.Path, net: a.net, Rank: max(a.Rank, b.Rank), ID: a.ID + "+" + b.ID, deltas: nn.Adapter{Deltas: map[*nn.Linear][]nn.LowRank{}}}
	for _, from := range []*Adapter{a, b} {
		for l, ds := range from.deltas.Deltas {
			sum.deltas.Deltas[l] = append(sum.deltas.Deltas[l], ds...)
		}
	}
	sum.Targets = len(sum.deltas.Deltas)
	return sum
}

// lowRank are the two matrices that change a weight, as an adapter's file has them.
type lowRank struct {
	down, up         tensor.Mat // [rank][in], [out][rank]
	downName, upName string     // none: it is not there
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
	open := openPEFT
	if strings.HasSuffix(path, ".gguf") {
		open = openGGUFAdapter
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.close()
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
	a := &Adapter{Path: path, net: m.net, deltas: nn.Adapter{Deltas: map[*nn.Linear][]nn.LowRank{}}}
	if err := m.attach(a, f); err != nil {
		return nil, err
	}
	a.ID, a.Targets = f.identity(), len(a.deltas.Deltas)
	return a, nil
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
	}{{&p.down, p.downName}, {&p.up, p.upName}} {
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
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// unadapted are the parts of a layer whose products are not those of nn's Linear,
// where deltas are added: experts, and what latent attention has absorbed.
var unadapted = []string{"_exps", "ffn_down_shexp", "attn_k_b", "attn_v_b", "attn_kv_b"}

// attach gives the model's matrices their deltas.
func (m *Model) attach(a *Adapter, f *adapterFile) error {
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
		rows := 0
		for _, w := range parts[name] {
			rows += w.Rows
		}
		cols := parts[name][0].Cols
		if p.down.Cols != cols {
			return f.fault("tensor %q: expected %d columns, as the model's %s has, found %d", p.downName, cols, name, p.down.Cols)
		} else if up.Rows != rows {
			return f.fault("tensor %q: expected %d rows, as the model's %s has, found %d", p.upName, rows, name, up.Rows)
		}
		if err := a.add(f, p, up, parts[name], linears); err != nil {
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
func (a *Adapter) add(f *adapterFile, p *lowRank, up tensor.Mat, parts []*kernel.Packed, linears map[*kernel.Packed]*nn.Linear) error {
	down, err := a.pack(p.down)
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
		packed, err := a.pack(part)
		if err != nil {
			return f.fault("tensor %q: %w", p.upName, err)
		}
		a.deltas.Deltas[l] = append(a.deltas.Deltas[l], nn.LowRank{Down: down, Up: packed, Scale: p.scale})
		first += w.Rows
	}
	return nil
}

func (a *Adapter) pack(m tensor.Mat) (*kernel.Packed, error) {
	p, err := kernel.NewPacked(m, func(n int) []byte {
		const line = 64
		b := make([]byte, n+line-1)
		lo := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % line)
		return b[lo : lo+n : lo+n]
	})
	if err != nil {
		return nil, err
	}
	p.Pack(m, 0, p.Groups)
	a.Bytes += int64(p.Size())
	return p, nil
}

// adapterTarget is where an adapter has the deltas of a weight.
type adapterTarget struct {
	target string
	fix    func(tensor.Mat) (tensor.Mat, error) // of the weight's rows; nil for none
}

// reorder returns the matrix up of p with its rows in the order of the model's.
func (t *adapterTarget) reorder(p *lowRank) (tensor.Mat, error) {
	if t.fix == nil {
		return p.up, nil
	}
	// Weights of GPT-2 lie [in][out]: a column is turned into a row by what turns them.
	column := tensor.Mat{Type: tensor.F32, Rows: p.up.Rows, Cols: 1, Data: make([]byte, 4*p.up.Rows)}
	if got, err := t.fix(column); err == nil && got.Rows == 1 && got.Cols == p.up.Rows && p.up.Rows > 1 {
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
					out[name] = adapterTarget{target: full}
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
				out[name] = adapterTarget{target: t.names[0], fix: t.fix}
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return out
}

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
		for _, end := range []string{".lora_A.weight", ".lora_B.weight", ".lora_A.default.weight", ".lora_B.default.weight"} {
			if s, found := strings.CutSuffix(name, end); found {
				module, part = s, end[:len(".lora_A")]
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
		p := f.pair(module + ".weight")
		if part == ".lora_A" {
			p.down, p.downName = mat, t.Name
		} else {
			p.up, p.upName = mat, t.Name
		}
		if len(t.Shape) != 2 {
			st.Close()
			return nil, f.fault("tensor %q: expected a matrix, found shape %v", t.Name, t.Shape)
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
