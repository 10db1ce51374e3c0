package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"ridge/kernel"
	"ridge/kvcache"
	"ridge/nn"
	"ridge/weights/tensor"
)

// passes computes texts layer by layer: a layer of all texts before the next one. Keys
// and values are of use within their layer, so those of one text are there at a time.
type passes struct {
	m     *Model
	exec  *nn.Exec
	watch func(x *kernel.Acts, l *nn.Linear)
	texts [][]int32
	rows  netRows
	held  heldRows
	layer int // the next one
}

// newPasses begins with texts; see Taps. watch is shown the rows that matrices read.
func (m *Model) newPasses(texts [][]int32, dir string, watch func(x *kernel.Acts, l *nn.Linear)) (*passes, error) {
	p := &passes{m: m, watch: watch, texts: texts}
	longest := 0
	for _, tokens := range texts {
		longest = max(longest, len(tokens))
	}
	cfg := kvcache.Config{Layers: m.net.Keeps(), DType: tensor.F32, PageTokens: 64}
	var err error
	if cfg.MaxBytes, err = kvcache.SequenceBytes(cfg, longest+64, 0); err != nil {
		return nil, err
	}
	kv, err := kvcache.New(cfg)
	if err != nil {
		return nil, err
	}
	p.exec = nn.NewExec(m.pool)
	p.exec.KV, p.exec.Watch = kv, watch
	if dir != "" && len(texts) > 1 {
		if err := p.held.open(dir); err != nil {
			return nil, errors.Join(err, kv.Close())
		}
	}
	return p, nil
}

// end returns the layer before which next stops. Rows alone cross from a layer to the
// next, but where something else does all layers are computed for a text.
func (p *passes) end() int {
	n := p.m.net
	if !n.apart() || p.layer == len(n.Layers)-1 {
		return len(n.Layers) + 1
	}
	return p.layer + 1
}

// apart reports whether layers read nothing of each other but the residual rows.
func (n *Net) apart() bool {
	for i := range n.Layers {
		if a, ok := n.Layers[i].Mix.(*nn.Attention); ok && a.KeysOf != nil {
			return false
		}
	}
	return n.Embed.PerLayer == nil && n.Embed.Streams == nil
}

// next computes the layers before end of all texts, and says whether there are more.
func (p *passes) next(ctx context.Context) (more bool, err error) {
	m, end := p.m, p.end()
	m.pool.Enter()
	defer m.pool.Leave()
	for i := range p.texts {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if err := p.text(i, end, i == 0 || end-p.layer > 1); err != nil {
			return false, err
		}
	}
	p.layer = end
	return end <= len(m.net.Layers), nil
}

// text computes the layers before end of a text. fetch says that the weights of these
// layers have to be read, if they lie in a file.
func (p *passes) text(i, end int, fetch bool) error {
	m, tokens := p.m, p.texts[i]
	kv := p.exec.KV
	seq := kv.NewSeq()
	defer kv.Truncate(seq, 0)
	if err := kv.Grow(seq, len(tokens)); err != nil {
		return err
	}
	s := &Step{Runs: []Run{{Seq: seq, Tokens: tokens, Outputs: len(tokens)}}, NoLogits: true}
	s.Place()
	m.setWidth(len(tokens))
	p.exec.Begin(s)
	x := &p.rows.x
	if p.layer == 0 {
		if err := m.lookUp(s, &p.rows); err != nil {
			return err
		}
		m.src.release(m.net.Embed.Tokens.Data)
	} else if len(p.texts) > 1 {
		nn.Rows(x, len(tokens), x.K, false)
		if err := p.held.read(i, x); err != nil {
			return err
		}
	}
	if err := m.guard(func() { p.compute(s, end, fetch) }); err != nil {
		return err
	}
	if end <= len(m.net.Layers) && len(p.texts) > 1 {
		return p.held.write(i, x)
	}
	return nil
}

// compute computes the layers before end from the rows before p.layer.
func (p *passes) compute(s *Step, end int, fetch bool) {
	n := p.m.net
	if p.layer == 0 {
		n.begin(p.exec, &p.rows)
	}
	for l := p.layer; l < min(end, len(n.Layers)); l++ {
		if fetch {
			n.fetch(l)
		}
		n.layer(p.exec, s, &p.rows, l)
	}
	if end > len(n.Layers) {
		n.finish(p.exec, s, &p.rows)
		p.watch(&p.rows.out, &n.Head.Out)
	}
}

func (p *passes) close() error { return errors.Join(p.exec.KV.Close(), p.held.close()) }

// heldRows are the residual rows of texts, [tokens][hidden] each, in memory or in a file.
type heldRows struct {
	file *os.File // nil: in memory
	at   []int64  // where in the file a text begins
	end  int64
	rows [][]float32
}

// open makes the file within dir. It goes with the process.
func (h *heldRows) open(dir string) error {
	f, err := os.CreateTemp(dir, ".rows-")
	if err != nil {
		return fmt.Errorf("model: rows of texts: %w", err)
	}
	h.file = f
	os.Remove(f.Name()) // some systems do it at close
	return nil
}

// write keeps the rows of text i. Texts come in order the first time.
func (h *heldRows) write(i int, x *kernel.Acts) error {
	if h.file == nil {
		if i == len(h.rows) {
			h.rows = append(h.rows, make([]float32, x.N*x.K))
		}
		for r := range x.N {
			copy(h.rows[i][r*x.K:], nn.Row(x, r)[:x.K])
		}
		return nil
	}
	if i == len(h.at) {
		h.at, h.end = append(h.at, h.end), h.end+int64(4*x.N*x.K)
	}
	for r := range x.N {
		if _, err := h.file.WriteAt(rowBytes(x, r), h.at[i]+int64(4*r*x.K)); err != nil {
			return fmt.Errorf("model: rows of texts: %w", err)
		}
	}
	return nil
}

// read fills x with the rows of text i.
func (h *heldRows) read(i int, x *kernel.Acts) error {
	for r := range x.N {
		if h.file == nil {
			copy(nn.Row(x, r), h.rows[i][r*x.K:(r+1)*x.K])
		} else if _, err := h.file.ReadAt(rowBytes(x, r), h.at[i]+int64(4*r*x.K)); err != nil {
			return fmt.Errorf("model: rows of texts: %w", err)
		}
	}
	return nil
}

// rowBytes is the memory of a row.
func rowBytes(x *kernel.Acts, r int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(nn.Row(x, r)))), 4*x.K)
}

func (h *heldRows) close() error {
	if h.file == nil {
		return nil
	}
	err := h.file.Close()
	os.Remove(h.file.Name())
	return err
}
