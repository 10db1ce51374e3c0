package model

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ridge/nn"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// Layers that predict further tokens (MTP: DeepSeek-AI, "DeepSeek-V3 Technical Report",
// 2024, arXiv 2412.19437), which models have in their own files: a norm of the embedding and
// one of the state behind the model's last norm, a matrix that reads both side by side, a
// layer as the model's are, and a norm before the model's output matrix. GGUF has them
// behind the others, "blk.N.nextn.eh_proj". So have checkpoints of DeepSeek and GLM; Qwen's
// and MiMo's have them apart. Of several the first one is used, for all places.

// nextnNames are the names that parts of such layers have beside those of other layers.
var nextnNames = map[string]string{
	"nextn.eh_proj": "eh_proj", "nextn.enorm": "enorm", "nextn.hnorm": "hnorm", "nextn.embed_tokens": "embed_tokens",
	"nextn.shared_head_norm": "shared_head.norm", "nextn.shared_head_head": "shared_head.head",
}

// nextnApart are the names of parts that lie apart from the layers, and of those in a layer of
// their own, in the words of nextnNames.
var nextnApart = map[string]string{
	"mtp.fc": "eh_proj", "mtp.pre_fc_norm_embedding": "enorm", "mtp.pre_fc_norm_hidden": "hnorm", "mtp.norm": "shared_head.norm",
	"input_proj": "eh_proj", "token_layernorm": "enorm", "hidden_layernorm": "hnorm", "final_layernorm": "shared_head.norm",
}

// nextnFiles has the tensors of such layers under the names of layers behind the others.
type nextnFiles struct {
	hfFiles
	file map[string]string // what the files call them
}

func (f *nextnFiles) Tensors() []safetensors.TensorInfo {
	all := f.hfFiles.Tensors()
	for _, name := range slices.Sorted(maps.Keys(f.file)) {
		all = append(all, safetensors.TensorInfo{Name: name})
	}
	return all
}

func (f *nextnFiles) Mat(name string) (tensor.Mat, error) {
	if as, ok := f.file[name]; ok {
		name = as
	}
	return f.hfFiles.Mat(name)
}

// nextnName returns what nextnFiles calls a tensor, "" for one that does not lie apart.
func nextnName(name, root string, layers int) string {
	part, suffix := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		part, suffix = name[:dot], name[dot:]
	}
	if as, ok := nextnApart[part]; ok && strings.HasPrefix(part, "mtp.") {
		return fmt.Sprint(root, "layers.", layers, ".", as, suffix)
	}
	for _, prefix := range []string{"mtp.layers.", "model.mtp_layers."} {
		rest, ok := strings.CutPrefix(name, prefix)
		number, rest, inside := strings.Cut(rest, ".")
		n, err := strconv.Atoi(number)
		if !ok || !inside || err != nil || n < 0 || n > 1<<12 {
			continue
		}
		part := strings.TrimSuffix(rest, suffix)
		if as, ok := nextnApart[part]; ok {
			rest = as + suffix
		}
		return fmt.Sprint(root, "layers.", layers+n, ".", rest)
	}
	return ""
}

// openAhead opens the layer of the model's own files that predicts further tokens.
func (m *Model) openAhead() (*DraftHead, error) {
	c := m.cfg.withAhead()
	src, stateFirst := m.src, false
	if hf, ok := m.src.(*hfSource); ok {
		files := &nextnFiles{hf.st, map[string]string{}}
		names := m.arch.names
		names.names = maps.Clone(names.names)
		maps.Copy(names.names, nextnNames)
		has := map[string]bool{}
		for _, t := range hf.st.Tensors() {
			has[t.Name] = true
		}
		root := names.root(has)
		for name := range has {
			if as := nextnName(name, root, m.cfg.Layers); as != "" {
				files.file[as] = name
				stateFirst = stateFirst || strings.HasPrefix(name, "model.mtp_layers.")
			}
		}
		src = names.open(files, hf.dir, c)
	}
	at := func(part string) string { return fmt.Sprintf("blk.%d.%s", m.cfg.Layers, part) }
	if !src.has(at("nextn.eh_proj.weight")) {
		return nil, fmt.Errorf("model: %s: draft head: expected a layer that predicts further tokens, tensor %q, found none", src.name(), src.names(at("nextn.eh_proj.weight"))[0])
	}
	return m.buildHead(src, "mtp", "", func(b *headBuilder, h *DraftHead) {
		b.behindNorm(h)
		b.c, b.present, b.first = c, maps.Clone(m.present), m.cfg.Layers
		h.net = m.arch.build(b.builder)
		if b.err != nil {
			return
		}
		hidden := c.Hidden
		h.stateFirst, h.normed = stateFirst, stateFirst || c.deltaRule()
		h.embNorm, h.stateNorm = b.norm(at("nextn.enorm"), hidden), b.norm(at("nextn.hnorm"), hidden)
		h.join = b.linear(at("nextn.eh_proj"), hidden, 2*hidden)
		h.net.Head, h.net.Norm = m.net.Head, m.net.Norm
		if b.has(at("nextn.shared_head_norm.weight")) {
			h.net.Norm = b.norm(at("nextn.shared_head_norm"), hidden)
		}
		if e, ok := b.find(at("nextn.embed_tokens.weight"), m.cfg.Vocab, hidden); ok {
			h.embed.Tokens = e
		}
		if out, ok := b.find(at("nextn.shared_head_head.weight"), m.cfg.Vocab, hidden); ok && !b.isOutput(out) {
			h.net.Head.Out = nn.Linear{W: b.pack(at("nextn.shared_head_head"), out)}
		}
	}, false)
}

// isOutput reports whether a matrix is a copy of the model's output matrix.
func (b *headBuilder) isOutput(m tensor.Mat) bool {
	out, ok, err := b.src.mat("output.weight")
	if err != nil || !ok {
		return false
	}
	defer b.src.release(out.Data)
	defer b.src.release(m.Data)
	return out.Type == m.Type && out.Rows == m.Rows && out.Cols == m.Cols && bytes.Equal(out.Data, m.Data)
}

// withAhead returns c with one layer more, which is as the last one, but has attention.
func (c *Config) withAhead() *Config {
	more := *c
	n := more.Layers + 1
	more.Layers, more.Ahead = n, 0
	for _, s := range []*[]int{&more.KVHeads, &more.Dims, &more.FFNs, &more.LayerRope, &more.Window, &more.Chunk} {
		*s = andLast(*s)
	}
	more.Experts.Layers = andLast(more.Experts.Layers)
	more.Cutoffs, more.XIELU, more.Rope = andLast(more.Cutoffs), andLast(more.XIELU), slices.Clone(more.Rope)
	for _, s := range []*[]bool{&more.State.Layers, &more.FFNAlone, &more.Conv.Layers} {
		if *s != nil {
			*s = append(slices.Clone(*s), false)
		}
	}
	if more.KeysFrom != nil {
		more.KeysFrom = append(slices.Clone(more.KeysFrom), n-1)
	}
	return &more
}

// andLast returns s with its last element twice, nil for none.
func andLast[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return append(slices.Clone(s), s[len(s)-1])
}
