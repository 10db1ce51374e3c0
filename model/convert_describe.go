package model

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"ridge/nn"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// describe makes a GGUF file of a checkpoint: its description under the keys that
// GGUF has, its weights, tokenizer and template.
func (c *conversion) describe(m *Model) (*gguf.Builder, error) {
	net, nb, err := m.shapes()
	if err != nil {
		return nil, err
	}
	cfg := nb.c
	b := gguf.NewBuilder()
	name := strings.TrimSuffix(filepath.Base(m.path), string(filepath.Separator))
	for _, kv := range []struct {
		key string
		v   any
	}{{"general.architecture", m.arch.name}, {"general.type", "model"}, {"general.name", name}, {"general.quantization_version", uint32(2)}} {
		if err := b.Set(kv.key, kv.v); err != nil {
			return nil, err
		}
	}
	if err := m.transcribe(b, cfg); err != nil {
		return nil, err
	}
	if err := c.vocabulary(m, b); err != nil {
		return nil, err
	}
	if err := c.ropeTensors(b, cfg); err != nil {
		return nil, err
	}
	names := nb.found
	if m.arch.head && !slices.Contains(names, "output.weight") {
		names = append(names, "output.weight") // the embedding again: other readers know no other way
	}
	if err := c.tensors(m, names, b, cfg); err != nil {
		return nil, err
	}
	typ := c.o.Type
	if c.o.Keep {
		typ = net.Embed.Tokens.Type
	}
	return b, b.Set("general.file_type", fileTypeOf(typ))
}

// transcribe sets the keys of the architecture: what config.json says under a key
// for which GGUF has another, and then what follows from the whole of it.
func (m *Model) transcribe(b *gguf.Builder, c *Config) error {
	prefix := m.arch.name + "."
	d, err := hfDescription(m.path)
	if err != nil {
		return err
	}
	asked := map[string]bool{}
	d.noted = func(key string, v any, want string) {
		key, _, _ = strings.Cut(key, "|")
		asked[key] = true
		whole, outside := strings.CutPrefix(key, ".")
		if !outside {
			whole = prefix + key
		}
		if v, ok := ggufValue(v, want); ok {
			_ = b.Set(whole, v) // of a type that GGUF has
		}
	}
	var again Config
	if err := m.arch.read(d, &again); err != nil {
		return err
	}
	set := func(key string, v any) {
		if err == nil {
			err = b.Set(prefix+key, v)
		}
	}
	sizeKeys(set, c, m.arch.joinedKV)
	stateKeys(set, c, m.arch.stateOnly)
	for _, f := range []struct {
		key string
		v   float32
	}{{"attn_logit_softcapping", c.AttnSoftcap}, {"final_logit_softcapping", c.FinalSoftcap}, {"attention.temperature_scale", c.Temper.Beta}} {
		if f.v != 0 || asked[f.key] {
			set(f.key, f.v)
		}
	}
	if v, ok := d.json["use_parallel_residual"].(bool); ok {
		set("use_parallel_residual", v) // some readers want it
	}
	attentionKeys(set, c)
	encoderKeys(set, c, &m.defaults)
	if c.Encoder.Types > 0 && err == nil {
		err = b.Set("tokenizer.ggml.token_type_count", uint32(c.Encoder.Types))
	}
	if slices.Max(c.Window) == 0 && c.Encoder.Reach == nil {
		b.Remove(prefix + "attention.sliding_window")
	}
	expertKeys(set, &c.Experts)
	if m.arch == &graniteHybrid {
		set("rope.scaling.finetuned", c.RopeStyle != nn.RopeNone)
	}
	if m.arch == &nemotronH { // as llama.cpp has it, though nothing is rotated
		set("rope.dimension_count", uint32(c.HeadDim))
	}
	if (c.RopeStyle != nn.RopeNone || m.arch == &graniteHybrid) && err == nil {
		err = ropeKeys(set, c)
		if n, ok := asInt(d.json["original_max_position_embeddings"]); ok {
			set("rope.scaling.original_context_length", uint32(n))
		}
	}
	return err
}

// sizeKeys sets the keys of sizes, which a config.json need not have.
func sizeKeys(set func(string, any), c *Config, joined bool) {
	set("vocab_size", uint32(c.Vocab))
	set("context_length", uint32(c.Context))
	set("feed_forward_length", uint32(c.FFN))
	if c.FFNAlone != nil {
		widths := everyLayer(c.Layers, 0)
		for i, alone := range c.FFNAlone {
			if alone {
				widths[i] = c.ffn(i)
			}
		}
		set("feed_forward_length", perLayerValue(widths))
	}
	set("block_count", uint32(c.Layers+c.Ahead))
	if l := &c.Latent; l.Rank > 0 && joined {
		set("attention.head_count_kv", uint32(c.Heads))
		set("attention.key_length", uint32(c.HeadDim))
		set("attention.value_length", uint32(l.ValueDim))
	} else if l.Rank > 0 { // as the cache has them, and as queries
		set("attention.head_count_kv", uint32(1))
		set("attention.key_length", uint32(l.Rank+l.RopeDim))
		set("attention.value_length", uint32(l.Rank))
		set("attention.key_length_mla", uint32(c.HeadDim))
		set("attention.value_length_mla", uint32(l.ValueDim))
	} else {
		set("attention.key_length", uint32(c.HeadDim))
		set("attention.value_length", uint32(c.HeadDim))
		heads := slices.Clone(c.KVHeads)
		for i, conv := range c.Conv.Layers {
			if conv {
				heads[i] = 0
			}
		}
		for i, alone := range c.State.Layers {
			if alone && !c.deltaRule() && !c.State.Beside {
				heads[i] = 0
			}
		}
		for i, alone := range c.FFNAlone {
			if alone {
				heads[i] = 0
			}
		}
		set("attention.head_count_kv", perLayerValue(heads))
	}
}

// stateKeys sets the keys of states, and what other readers want of a model without
// attention.
func stateKeys(set func(string, any), c *Config, alone bool) {
	x := &c.State
	if x.Layers == nil {
		return
	}
	set("ssm.conv_kernel", uint32(x.Taps))
	set("ssm.inner_size", uint32(x.Inner))
	set("ssm.state_size", uint32(x.States))
	if set("ssm.time_step_rank", uint32(cmp.Or(x.Heads, x.Rank))); x.Heads > 0 {
		set("ssm.group_count", uint32(x.Groups))
	}
	if c.deltaRule() {
		set("attention.recurrent_layers", x.Layers)
	}
	if alone {
		set("attention.head_count", uint32(0))
		set("feed_forward_length", uint32(0))
		if x.Heads == 0 {
			set("ssm.dt_b_c_rms", x.NormRanks)
		}
	}
}

// attentionKeys sets the keys of norms and scores.
func attentionKeys(set func(string, any), c *Config) {
	set("attention.layer_norm_rms_epsilon", c.NormEps) // readers ask for one or the other
	set("attention.layer_norm_epsilon", c.NormEps)
	if c.AlibiBias != 0 {
		set("attention.max_alibi_bias", c.AlibiBias)
	}
	if c.ClipQKV != 0 {
		set("attention.clamp_kqv", c.ClipQKV)
	}
	if plain := float32(1 / math.Sqrt(float64(c.HeadDim))); c.AttnScale != plain && c.Latent.Rank == 0 {
		set("attention.scale", c.AttnScale)
	}
	if size := slices.Max(c.Window); size > 0 {
		set("attention.sliding_window", uint32(size))
		if slices.Min(c.Window) == 0 {
			pattern := make([]bool, len(c.Window))
			for i, w := range c.Window {
				pattern[i] = w > 0
			}
			set("attention.sliding_window_pattern", pattern)
		}
	}
}

// expertKeys sets the keys of mixtures.
func expertKeys(set func(string, any), x *ExpertConfig) {
	if x.Count == 0 {
		return
	}
	set("expert_feed_forward_length", uint32(x.FFN))
	if x.SharedFFN > 0 {
		set("expert_shared_feed_forward_length", uint32(x.SharedFFN))
	}
	set("expert_weights_scale", x.Scale)
	switch x.Score {
	case nn.ScoreSoftmax:
		set("expert_gating_func", uint32(1))
	case nn.ScoreSigmoid:
		set("expert_gating_func", uint32(2))
	}
	// Of those that are dense only the first can be told.
	if first := slices.Index(x.Layers, true); first > 0 && !slices.Contains(x.Layers[first:], false) {
		set("leading_dense_block_count", uint32(first))
	}
}

// ropeKeys sets the keys of the rotation.
func ropeKeys(set func(string, any), c *Config) error {
	set("rope.dimension_count", uint32(c.RopeDim))
	set("rope.freq_base", float32(c.Rope[0].Base))
	if len(c.Rope) > 1 {
		set("rope.freq_base_swa", float32(c.Rope[1].Base))
	}
	s := &c.Rope[0].Scaling
	switch s.Kind {
	case "", "llama3": // in a tensor
		return nil
	case dynamic:
		return fmt.Errorf("model: convert: rope_scaling: expected none, linear, llama3, yarn or longrope, which GGUF has, found %s", s.Kind)
	}
	set("rope.scaling.original_context_length", uint32(s.Original))
	set("rope.scaling.type", s.Kind)
	if s.Kind != longRope {
		set("rope.scaling.factor", float32(s.Factor))
	}
	switch {
	case s.Kind == longRope:
		if s.AttnFactor != 0 {
			set("rope.scaling.attn_factor", float32(s.AttnFactor))
		} else if s.Factor > 1 && s.Original > 1 {
			set("rope.scaling.attn_factor", float32(math.Sqrt(1+math.Log(s.Factor)/math.Log(float64(s.Original)))))
		}
	case s.Kind == "yarn":
		set("rope.scaling.yarn_beta_fast", float32(s.BetaFast))
		set("rope.scaling.yarn_beta_slow", float32(s.BetaSlow))
		if s.AttnFactor != 0 {
			set("rope.scaling.yarn_attn_factor", float32(s.AttnFactor))
		}
		if s.MScaleAll != 0 {
			all := s.MScaleAll
			if c.Latent.Rank > 0 {
				all *= 0.1 // as these families have it
			}
			set("rope.scaling.yarn_log_multiplier", float32(all))
		}
	}
	return nil
}

// ropeTensors adds factors of frequencies, which GGUF keeps as tensors.
func (c *conversion) ropeTensors(b *gguf.Builder, cfg *Config) error {
	if cfg.RopeStyle == nn.RopeNone {
		return nil
	}
	s := &cfg.Rope[0].Scaling
	lists := map[string][]float32{}
	switch s.Kind {
	case longRope:
		lists["rope_factors_short.weight"], lists["rope_factors_long.weight"] = s.Short, s.Long
	case "llama3":
		inv := make([]float32, cfg.RopeDim/2)
		fill(inv, cfg.Rope[0].Base, cfg.RopeDim)
		for _, f := range inv {
			lists["rope_freqs.weight"] = append(lists["rope_freqs.weight"], f/llama3Frequency(f, s))
		}
	}
	for _, name := range []string{"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"} {
		x := lists[name]
		if x == nil {
			continue
		}
		m := tensor.Mat{Type: tensor.F32, Rows: 1, Cols: len(x), Data: make([]byte, 4*len(x))}
		if err := tensor.F32.Encode(m.Data, x); err != nil {
			return err
		}
		if err := c.add(b, name, tensor.F32, []uint64{uint64(len(x))}, func(yield func(tensor.Mat) error) error { return yield(m) }); err != nil {
			return err
		}
	}
	return nil
}

// ggufValue returns a value of a config.json in the type that GGUF files have.
func ggufValue(v any, want string) (any, bool) {
	switch want {
	case "an integer":
		if n, ok := asInt(v); ok && n >= 0 && n <= math.MaxUint32 {
			return uint32(n), true
		}
		if list, ok := asInts(v); ok {
			return perLayerValue(list), true
		}
	case "a number":
		if f, ok := asFloat(v); ok {
			return float32(f), true
		}
	case "true or false":
		b, ok := v.(bool)
		return b, ok
	case "a string":
		s, ok := v.(string)
		return s, ok
	}
	return nil, false
}

// perLayerValue returns one number where all layers have the same.
func perLayerValue(list []int) any {
	out := make([]int32, len(list))
	same := true
	for i, n := range list {
		out[i], same = int32(n), same && n == list[0]
	}
	if same && len(list) > 0 {
		return uint32(list[0])
	}
	return out
}

// vocabulary sets the keys of tokenizer and template.
func (c *conversion) vocabulary(m *Model, b *gguf.Builder) error {
	if m.template != "" {
		if err := b.Set("tokenizer.chat_template", m.template); err != nil {
			return err
		}
	}
	if m.defaults.Rerank != "" {
		if err := b.Set("tokenizer.chat_template.rerank", m.defaults.Rerank); err != nil {
			return err
		}
	}
	file, err := os.ReadFile(filepath.Join(m.path, "tokenizer.json"))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("model: convert: %w", err)
	}
	config, err := os.ReadFile(filepath.Join(m.path, "tokenizer_config.json"))
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("model: convert: %w", err)
	}
	ends, err := hfEnds(m.path)
	if err != nil {
		return err
	}
	keys, err := tokenizer.ToGGUF(file, strictJSON(config), m.cfg.Vocab, ends)
	if err != nil {
		return fmt.Errorf("model: convert: %s: %w", m.path, err)
	}
	for _, kv := range keys {
		if err := b.Set(kv.Key, kv.Value); err != nil {
			return err
		}
	}
	return nil
}

// compare reads what was written and returns an error if it describes another
// model than m.
func (c *conversion) compare(m *Model, path string) error {
	got := &Model{path: path}
	defer got.Close()
	if err := got.openSource(); err != nil {
		return err
	}
	_, gb, err := got.shapes()
	if err != nil {
		return err
	}
	_, wb, err := m.shapes()
	if err != nil {
		return err
	}
	g, w := *gb.c, *wb.c
	for _, c := range []*Config{&g, &w} { // these are in tensors, or follow from others
		c.Tied, c.UnitOutput, c.XIELU, c.Ahead = false, false, nil, 0
		for i, conv := range c.Conv.Layers {
			if conv {
				c.KVHeads[i] = 0
			}
		}
		for i := range c.Rope {
			c.Rope[i].Base = float64(float32(c.Rope[i].Base))
			s := &c.Rope[i].Scaling
			if s.Kind != "yarn" && s.Kind != "linear" {
				*s = RopeScaling{}
			}
			*s = RopeScaling{Kind: s.Kind, Factor: float64(float32(cmp.Or(s.Factor, 1))), AttnFactor: float64(yarnScaleOf(s))}
		}
		if c.RopeStyle == nn.RopeNone {
			c.Rope, c.RopeDim = nil, 0
		}
	}
	gv, wv := reflect.ValueOf(g), reflect.ValueOf(w)
	for i := range gv.NumField() {
		if x, y := gv.Field(i).Interface(), wv.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			return fmt.Errorf("%s: expected %v, found %v when it was read again", gv.Type().Field(i).Name, y, x)
		}
	}
	return nil
}

// yarnScaleOf returns the scale of cos and sin that yarn gives, 0 for others.
func yarnScaleOf(s *RopeScaling) float32 {
	if s.Kind != "yarn" {
		return 0
	}
	return yarnScale(s)
}
