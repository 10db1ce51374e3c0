package compress

import (
	"fmt"
	"slices"
)

// load decodes the matrices of a layer whose inputs were collected.
func (r *layerRun) load(layer int) (*Layer, error) {
	l := &Layer{Index: layer, threads: max(1, r.p.o.Threads), vectors: map[string]*Matrix{}}
	for _, s := range r.inputs[layer] {
		site := &Site{Inputs: s.in}
		for _, part := range s.parts {
			row, ok := r.row(layer, part+".weight")
			if !ok || len(row.Dims) != 2 || int(row.Dims[0]) != s.in.Cols || row.To == row.From && row.From.BlockSize() > 1 {
				continue
			}
			m, err := r.matrix(row)
			if err != nil {
				return nil, err
			}
			site.Mats = append(site.Mats, m)
		}
		if len(site.Mats) > 0 {
			l.Sites = append(l.Sites, site)
		}
	}
	for _, s := range l.Sites {
		var err error
		if s.before, err = r.front(l, s); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// row returns the row of the plan that is called so within a layer.
func (r *layerRun) row(layer int, name string) (Row, bool) {
	name = fmt.Sprintf("blk.%d.%s", layer, name)
	i := slices.IndexFunc(r.p.Rows, func(row Row) bool { return row.Name == name })
	if i < 0 {
		return Row{}, false
	}
	return r.p.Rows[i], true
}

// matrix decodes a tensor.
func (r *layerRun) matrix(row Row) (*Matrix, error) {
	mat, err := r.p.f.Mat(row.Name)
	if err != nil {
		return nil, err
	}
	defer r.p.f.Release(mat.Data)
	m := &Matrix{Name: row.Name, Rows: mat.Rows, Cols: mat.Cols, Type: row.To, W: make([]float32, mat.Rows*mat.Cols)}
	mat.Type.Decode(m.W, mat.Data)
	m.Out = make([]byte, mat.Rows*row.To.RowBytes(mat.Cols))
	if row.Measured {
		m.importance = r.p.o.Importance.of(row.Name)
	}
	return m, nil
}

// vector returns the numbers called so in a layer, nil if there are none.
func (r *layerRun) vector(l *Layer, name string) (*Matrix, error) {
	row, ok := r.row(l.Index, name)
	if !ok || l.vectors[name] != nil {
		return l.vectors[name], nil
	}
	v, err := r.matrix(row)
	if err != nil {
		return nil, err
	}
	l.vectors[name] = v
	return v, nil
}

// folding are the architectures whose layers are attention behind attn_norm and a gated
// MLP behind ffn_norm, with nothing else that reads them.
var folding = []string{"llama", "qwen2", "qwen3"}

// front returns what computes the columns that site s reads, if it can be divided
// without changing anything else, nil otherwise.
func (r *layerRun) front(l *Layer, s *Site) (*before, error) {
	if !slices.Contains(folding, r.p.f.String("general.architecture", "")) {
		return nil, nil
	}
	if _, experts := r.row(l.Index, "ffn_gate_inp.weight"); experts {
		return nil, nil
	}
	has := func(part string) bool { return l.find(s.Mats, part) != nil }
	b := &before{n: s.Inputs.Cols, index: func(c int) int { return c }}
	switch {
	case has("attn_q") && has("attn_k") && has("attn_v"):
		return r.behind(l, b, "attn_norm")
	case has("ffn_gate") && has("ffn_up"):
		return r.behind(l, b, "ffn_norm")
	case has("ffn_down"):
		up := l.matrix("ffn_up")
		if up == nil || l.matrix("ffn_gate") == nil || up.Rows != b.n {
			return nil, nil
		}
		return r.given(l, b, up, "ffn_up.bias")
	case has("attn_output"):
		v := l.matrix("attn_v")
		heads, kv := r.count("attention.head_count"), r.count("attention.head_count_kv")
		if kv == 0 {
			kv = heads
		}
		if v == nil || heads == 0 || heads%kv != 0 || b.n%heads != 0 || v.Rows != b.n/heads*kv {
			return nil, nil
		}
		size := b.n / heads
		b.n, b.index = v.Rows, func(c int) int { return c/size/(heads/kv)*size + c%size }
		return r.given(l, b, v, "attn_v.bias")
	}
	return nil, nil
}

// behind completes b for columns that a normalization gives.
func (r *layerRun) behind(l *Layer, b *before, norm string) (*before, error) {
	if _, shifted := r.row(l.Index, norm+".bias"); shifted {
		return nil, nil
	}
	v, err := r.vector(l, norm+".weight")
	if err != nil || v == nil || len(v.W) != b.n {
		return nil, err
	}
	b.numbers = append(b.numbers, v)
	return b, nil
}

// given completes b for columns that are the rows of a matrix.
func (r *layerRun) given(l *Layer, b *before, m *Matrix, bias string) (*before, error) {
	b.rows = append(b.rows, m)
	v, err := r.vector(l, bias)
	if err != nil {
		return nil, err
	}
	if v != nil {
		b.numbers = append(b.numbers, v)
	}
	return b, nil
}

// count returns an entry of the architecture's description, 0 if it is not one number.
func (r *layerRun) count(key string) int {
	switch v, _ := r.p.f.Lookup(r.p.f.String("general.architecture", "") + "." + key); v := v.(type) {
	case uint32:
		return int(v)
	case int32:
		return int(v)
	case uint64:
		return int(v)
	}
	return 0
}

// find returns the matrix of a part, nil if it is not among mats.
func (l *Layer) find(mats []*Matrix, part string) *Matrix {
	name := fmt.Sprintf("blk.%d.%s.weight", l.Index, part)
	for _, m := range mats {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// matrix returns the matrix of a part, nil if the layer does not have it.
func (l *Layer) matrix(part string) *Matrix {
	for _, s := range l.Sites {
		if m := l.find(s.Mats, part); m != nil {
			return m
		}
	}
	return nil
}
