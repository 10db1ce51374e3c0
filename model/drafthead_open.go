package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// headKind is a form in which draft heads are released.
type headKind struct {
	name  string
	is    func(has func(name string) bool) bool // by the tensors of a file
	names func(name string) []string            // what a file may call a weight
	build func(b *headBuilder, h *DraftHead)
}

// headKinds are all forms that OpenDraftHead knows. The first one whose tensors a file has
// is its form.
var headKinds = []headKind{medusaKind, eagle3Kind, eagleKind}

// headBuilder builds a draft head.
type headBuilder struct {
	*builder
	m   *Model
	dir string // with a config.json, if the head needs one
}

// OpenDraftHead opens a head that was trained to guess tokens for m: a folder with
// safetensors and a config.json, or the one file with the weights; "" stands for the layer
// of m's own files that predicts further tokens. Errors name the file, the tensor or field,
// what was expected and what was found.
func (m *Model) OpenDraftHead(path string) (h *DraftHead, err error) {
	if err := m.mayHead(); err != nil {
		return nil, err
	}
	if path == "" {
		return m.openAhead()
	}
	file, err := headFile(path)
	if err != nil {
		return nil, err
	}
	st, err := safetensors.Open(file)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, t := range st.Tensors() {
		has[t.Name] = true
	}
	var names []string
	for i := range headKinds {
		k := &headKinds[i]
		if names = append(names, k.name); !k.is(func(name string) bool { return has[name] }) {
			continue
		}
		src := &hfSource{st: st, dir: st.Name(), depth: func(string) int { return -1 }, at: func(name string) (t hfTensor) {
			for _, t.names = range [][]string{k.names(name)} {
				for _, n := range t.names {
					if has[n] {
						return hfTensor{names: []string{n}, found: true}
					}
				}
			}
			return t
		}}
		return m.buildHead(src, k.name, filepath.Dir(file), k.build, true)
	}
	st.Close()
	return nil, fmt.Errorf("model: %s: draft head: expected the tensors of one of %v, found none of them", st.Name(), names)
}

// mayHead refuses models whose states no head reads.
func (m *Model) mayHead() error {
	switch {
	case m.cfg.Encoder.Both || m.net.Head.Out.W == nil:
		return fmt.Errorf("model: draft head: expected a model that gives logits, found %s", m.cfg.Arch)
	case m.net.Embed.Streams != nil || m.net.Embed.In.W != nil:
		return fmt.Errorf("model: draft head: expected a model with one residual stream as wide as its embedding, found %s", m.cfg.Arch)
	}
	return nil
}

// headFile finds the weights at path.
func headFile(path string) (string, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("model: draft head: %s: expected a folder or a .safetensors file, found none", path)
	} else if err != nil {
		return "", fmt.Errorf("model: draft head: %w", err)
	}
	const index = ".safetensors.index.json"
	if !st.IsDir() {
		if !strings.HasSuffix(path, ".safetensors") && !strings.HasSuffix(path, index) {
			return "", fmt.Errorf("model: draft head: expected a .safetensors file, found %s: torch.load and safetensors.torch.save_file make one of a .bin or .pt", path)
		}
		return path, nil
	}
	all, err := os.ReadDir(path)
	if err != nil {
		return "", fmt.Errorf("model: draft head: %w", err)
	}
	var found, other []string
	for _, f := range all {
		switch name := f.Name(); {
		case strings.HasSuffix(name, index):
			return filepath.Join(path, name), nil
		case strings.HasSuffix(name, ".safetensors"):
			found = append(found, name)
		case strings.HasSuffix(name, ".bin") || strings.HasSuffix(name, ".pt"):
			other = append(other, name)
		}
	}
	switch {
	case len(found) == 1:
		return filepath.Join(path, found[0]), nil
	case len(found) == 0 && len(other) > 0:
		return "", fmt.Errorf("model: draft head: %s: expected a .safetensors file, found %s: torch.load and safetensors.torch.save_file make one of it", path, other[0])
	}
	return "", fmt.Errorf("model: draft head: %s: expected one .safetensors file, found %d", path, len(found))
}

// buildHead builds a head from src, which is closed if that fails, or with the head, if it is its own.
func (m *Model) buildHead(src source, kind, dir string, build func(b *headBuilder, h *DraftHead), own bool) (*DraftHead, error) {
	h := &DraftHead{kind: kind, m: m, embed: m.net.Embed}
	h.embed.Scale, h.embed.row = 1, nil
	if own {
		h.src = src
	}
	c := m.cfg
	b := &headBuilder{m: m, dir: dir, builder: &builder{src: src, c: &c, w: &weights{}, present: map[string]presence{}, used: map[string]bool{}, asked: map[string]asked{}, pool: m.pool}}
	b.gguf = m.gg != nil && !own
	b.print = newFingerprint(&c)
	b.task = packTask{total: src.size(), release: src.release, apart: m.pool.Spread()}
	h.w = b.w
	m.pool.Enter()
	if build(b, h); b.err == nil {
		b.packPlanned()
	}
	m.pool.Leave()
	if own {
		b.checkRest()
	}
	src.drop()
	err := b.err
	if err == nil {
		err = src.check()
	}
	if err == nil {
		err = h.ready()
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// checkRest refuses weights that nothing has read: the head that they belong to is another.
func (b *headBuilder) checkRest() {
	for _, name := range b.src.tensors() {
		if b.used[name] || (&architecture{unused: headUnused}).passedOver(name) {
			continue
		}
		b.fail("tensor %q: expected no such tensor in a draft head of this form, found one", name)
		return
	}
}

// headUnused are tensors of heads that say what others do: which tokens a head knows, and
// copies of what the model has.
var headUnused = []string{"t2d", "embed_tokens.weight", "model.embed_tokens.weight"}

// see notes that a tensor was read.
func (b *builder) see(name string) {
	for _, n := range b.src.names(name) {
		b.used[n] = true
	}
}

// taps checks the layers that a head reads, and makes h read them.
func (b *headBuilder) taps(h *DraftHead, field string, layers []int) {
	if err := b.m.checkTaps(layers); err != nil || len(layers) == 0 {
		b.fail("%s: expected rising numbers of layers from 0 to %d, found %v", field, b.m.cfg.Layers, layers)
	}
	h.taps = slices.Clone(layers)
}

// behindNorm makes h read what is behind the model's last norm.
func (b *headBuilder) behindNorm(h *DraftHead) {
	h.taps, h.final = []int{b.m.cfg.Layers}, true
}

// tokenIDs reads a tensor of as many tokens of the model as the head knows: that of each,
// or with offsets how far it is behind the number that the head has for it. It returns nil
// if there is none.
func (b *headBuilder) tokenIDs(name string, n int, offsets bool) []int32 {
	m, ok, err := b.src.mat(name)
	switch {
	case err != nil:
		b.fail("%w", err)
		return nil
	case !ok:
		return nil
	case m.Type != tensor.I64 || m.Rows != 1 || m.Cols != n:
		b.fail("tensor %q: expected %d elements of type %v, found %d x %d of type %v", b.spelling(name), n, tensor.I64, m.Rows, m.Cols, m.Type)
		return nil
	}
	b.see(name)
	ids := make([]int32, n)
	for i := range ids {
		v := int64(binary.LittleEndian.Uint64(m.Data[8*i:]))
		if offsets {
			v += int64(i)
		}
		if v < 0 || v >= int64(b.m.cfg.Vocab) {
			b.fail("tensor %q: entry %d: expected a token from 0 to %d, found %d", b.spelling(name), i, b.m.cfg.Vocab-1, v)
			return nil
		}
		ids[i] = int32(v)
	}
	return ids
}
