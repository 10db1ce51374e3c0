package bench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// synShape is the shape of a published model, to measure speeds that do not
// depend on what the weights say.
type synShape struct {
	layers, hidden, heads, kvHeads, headDim, ffn, vocab, context int
	tied                                                         bool
	latent                                                       *synLatent  // nil for attention and MLPs as Llama has them
	experts                                                      *synExperts // nil for MLPs
}

// synExperts are the mixtures in the place of MLPs: how many experts, of the width
// of the MLP, and how many of them a token reads.
type synExperts struct{ count, used int }

// synShapes are the shapes by name, with the model they are taken from.
var synShapes = map[string]synShape{
	"tiny":    {2, 64, 4, 2, 16, 160, 512, 2048, true, nil, nil},                           // none: for tests
	"smol":    {30, 576, 9, 3, 64, 1536, 49152, 8192, true, nil, nil},                      // SmolLM2-135M
	"360m":    {32, 960, 15, 5, 64, 2560, 49152, 8192, true, nil, nil},                     // SmolLM2-360M
	"0.5b":    {24, 896, 14, 2, 64, 4864, 151936, 32768, true, nil, nil},                   // Qwen2.5-0.5B, without its biases
	"1.1b":    {22, 2048, 32, 4, 64, 5632, 32000, 2048, false, nil, nil},                   // TinyLlama-1.1B
	"1b":      {16, 2048, 32, 8, 64, 8192, 128256, 131072, true, nil, nil},                 // Llama-3.2-1B
	"3b":      {28, 3072, 24, 8, 128, 8192, 128256, 131072, true, nil, nil},                // Llama-3.2-3B
	"7b":      {32, 4096, 32, 32, 128, 11008, 32000, 4096, false, nil, nil},                // Llama-2-7B
	"v2-lite": {27, 2048, 16, 1, 0, 10944, 102400, 163840, false, v2Lite, nil},             // DeepSeek-V2-Lite
	"8b":      {32, 4096, 32, 8, 128, 14336, 128256, 131072, false, nil, nil},              // Llama-3.1-8B
	"tinymoe": {2, 64, 4, 2, 16, 32, 512, 2048, true, nil, &synExperts{8, 2}},              // none: for tests
	"30b-a3b": {48, 2048, 32, 4, 128, 768, 151936, 40960, false, nil, &synExperts{128, 8}}, // Qwen3-30B-A3B
}

// SyntheticShapes returns the names of the shapes that Synthetic knows, sorted.
func SyntheticShapes() []string {
	var names []string
	for n := range synShapes {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Synthetic writes a model of random weights in the shape of a published one to
// path, a GGUF file that ridge and its peers read. spec is a shape and a
// quantization, such as "1.1b:Q4_0" or "smol:Q4_K_M"; without the latter it is
// Q8_0. With "8b/4" it has 4 layers. The same spec and seed give the same file.
func Synthetic(path, spec string, seed uint64) error {
	b, err := synthesize(spec, seed)
	if err != nil {
		return err
	}
	return b.Save(path)
}

func synthesize(spec string, seed uint64) (*gguf.Builder, error) {
	name, quant, _ := strings.Cut(strings.ToLower(spec), ":")
	name, layers, fewer := strings.Cut(name, "/")
	shape, ok := synShapes[name]
	if !ok {
		return nil, fmt.Errorf("bench: synthetic model: shape: expected one of %v, found %q", SyntheticShapes(), name)
	}
	if n, err := strconv.Atoi(layers); fewer && (err != nil || n < 1 || n > shape.layers) {
		return nil, fmt.Errorf("bench: synthetic model: layers: expected 1 to %d, found %q", shape.layers, layers)
	} else if fewer {
		shape.layers = n
	}
	if quant == "" {
		quant = "q8_0"
	}
	mix, err := quantMix(quant)
	if err != nil {
		return nil, fmt.Errorf("bench: synthetic model: %w", err)
	}
	s := &synthesizer{b: gguf.NewBuilder(), seed: seed, shape: shape, mix: mix, banks: map[tensor.DType][]byte{}}
	s.metadata("synthetic "+spec, mix.file)
	s.tensors()
	return s.b, s.err
}

// mix says in which type a matrix is stored.
type mix struct {
	file uint32 // general.file_type
	of   func(part string, layer, layers int) tensor.DType
}

// quantMix returns the types of a quantization: one type for all matrices, or
// one of the mixtures of llama.cpp's quantizer.
func quantMix(name string) (mix, error) {
	moreBits := func(i, n int) bool { return i < n/8 || i >= 7*n/8 || (i-n/8)%3 == 2 }
	k := func(base tensor.DType) func(string, int, int) tensor.DType {
		return func(part string, i, n int) tensor.DType {
			if part == "output" || (part == "attn_v" || part == "ffn_down") && moreBits(i, n) {
				return tensor.Q6_K
			}
			return base
		}
	}
	switch name {
	case "q4_k_m":
		return mix{15, k(tensor.Q4_K)}, nil
	case "q5_k_m":
		return mix{17, k(tensor.Q5_K)}, nil
	}
	t, err := tensor.ParseDType(name)
	if err != nil || !t.CanEncode() {
		return mix{}, fmt.Errorf("quantization: expected Q4_K_M, Q5_K_M or an element type that can be written, found %q", name)
	}
	files := map[tensor.DType]uint32{
		tensor.F16: 1, tensor.Q4_0: 2, tensor.Q4_1: 3, tensor.Q8_0: 7, tensor.Q5_0: 8, tensor.Q5_1: 9, tensor.Q2_K: 10, tensor.Q3_K: 11,
		tensor.Q4_K: 14, tensor.Q5_K: 16, tensor.Q6_K: 18, tensor.IQ4_NL: 25, tensor.IQ4_XS: 30, tensor.BF16: 32, tensor.TQ1_0: 36, tensor.TQ2_0: 37,
	}
	return mix{files[t], func(string, int, int) tensor.DType { return t }}, nil
}

// narrower are the types that replace one whose blocks do not divide a row.
var narrower = map[tensor.DType]tensor.DType{
	tensor.Q2_K: tensor.IQ4_NL, tensor.Q3_K: tensor.IQ4_NL, tensor.Q4_K: tensor.Q5_0, tensor.Q5_K: tensor.Q5_1, tensor.Q6_K: tensor.Q8_0,
	tensor.IQ4_XS: tensor.IQ4_NL, tensor.TQ1_0: tensor.Q4_0, tensor.TQ2_0: tensor.Q4_0,
}

type synthesizer struct {
	b     *gguf.Builder
	shape synShape
	mix   mix
	seed  uint64
	banks map[tensor.DType][]byte
	n     uint64 // tensors so far
	err   error
}

func (s *synthesizer) set(key string, v any) {
	if err := s.b.Set(key, v); err != nil && s.err == nil {
		s.err = err
	}
}

func (s *synthesizer) metadata(name string, fileType uint32) {
	h := s.shape
	arch := "llama"
	switch {
	case h.latent != nil:
		arch = "deepseek2"
	case h.experts != nil:
		arch = "qwen3moe"
	}
	s.set("general.architecture", arch)
	s.set("general.name", name)
	s.set("general.file_type", fileType)
	for _, f := range []struct {
		key string
		v   int
	}{
		{"context_length", h.context}, {"embedding_length", h.hidden}, {"block_count", h.layers}, {"feed_forward_length", h.ffn},
		{"vocab_size", h.vocab}, {"attention.head_count", h.heads}, {"attention.head_count_kv", h.kvHeads},
	} {
		s.set(arch+"."+f.key, uint32(f.v))
	}
	if x := h.experts; x != nil {
		s.set(arch+".expert_count", uint32(x.count))
		s.set(arch+".expert_used_count", uint32(x.used))
		s.set(arch+".expert_feed_forward_length", uint32(h.ffn))
	}
	if h.latent != nil {
		s.latentMetadata(arch + ".")
	} else {
		for _, key := range []string{"attention.key_length", "attention.value_length", "rope.dimension_count"} {
			s.set(arch+"."+key, uint32(h.headDim))
		}
	}
	s.set(arch+".attention.layer_norm_rms_epsilon", float32(1e-5))
	s.set(arch+".rope.freq_base", float32(10000))
	s.vocabulary()
}

// vocabulary makes up a vocabulary of the SentencePiece kind: the special
// tokens, all bytes, and words that no text has.
func (s *synthesizer) vocabulary() {
	const normal, unknown, control, byteToken = 1, 2, 3, 6
	tokens, scores, types := []string{"<unk>", "<s>", "</s>"}, []float32{0, 0, 0}, []int32{unknown, control, control}
	for i := 0; len(tokens) < s.shape.vocab; i++ {
		text, kind := fmt.Sprintf("▁w%d", i), int32(normal)
		if i < 256 {
			text, kind = fmt.Sprintf("<0x%02X>", i), byteToken
		}
		tokens, scores, types = append(tokens, text), append(scores, -float32(i)), append(types, kind)
	}
	s.set("tokenizer.ggml.model", "llama")
	s.set("tokenizer.ggml.tokens", tokens)
	s.set("tokenizer.ggml.scores", scores)
	s.set("tokenizer.ggml.token_type", types)
	s.set("tokenizer.ggml.bos_token_id", uint32(1))
	s.set("tokenizer.ggml.eos_token_id", uint32(2))
	s.set("tokenizer.ggml.unknown_token_id", uint32(0))
}

func (s *synthesizer) tensors() {
	h := s.shape
	q, kv := h.heads*h.headDim, h.kvHeads*h.headDim
	if h.tied {
		s.matrix("token_embd", "output", -1, h.vocab, h.hidden)
	} else {
		s.matrix("token_embd", "token_embd", -1, h.vocab, h.hidden)
		s.matrix("output", "output", -1, h.vocab, h.hidden)
	}
	s.norm("output_norm")
	for i := range h.layers {
		at := fmt.Sprintf("blk.%d.", i)
		if h.latent != nil {
			s.latentLayer(at, i)
			continue
		}
		s.norm(at + "attn_norm")
		s.matrix(at+"attn_q", "attn_q", i, q, h.hidden)
		s.matrix(at+"attn_k", "attn_k", i, kv, h.hidden)
		s.matrix(at+"attn_v", "attn_v", i, kv, h.hidden)
		s.matrix(at+"attn_output", "attn_output", i, h.hidden, q)
		s.norm(at + "ffn_norm")
		if x := h.experts; x != nil {
			s.normOf(at+"attn_q_norm", h.headDim)
			s.normOf(at+"attn_k_norm", h.headDim)
			s.router(at+"ffn_gate_inp", x.count)
			s.stack(at+"ffn_gate_exps", "ffn_gate", i, x.count, h.ffn, h.hidden)
			s.stack(at+"ffn_up_exps", "ffn_up", i, x.count, h.ffn, h.hidden)
			s.stack(at+"ffn_down_exps", "ffn_down", i, x.count, h.hidden, h.ffn)
			continue
		}
		s.matrix(at+"ffn_gate", "ffn_gate", i, h.ffn, h.hidden)
		s.matrix(at+"ffn_up", "ffn_up", i, h.ffn, h.hidden)
		s.matrix(at+"ffn_down", "ffn_down", i, h.hidden, h.ffn)
	}
}

func (s *synthesizer) norm(name string) { s.normOf(name, s.shape.hidden) }

func (s *synthesizer) normOf(name string, n int) {
	one := make([]byte, 4*n)
	for i := 0; i < len(one); i += 4 {
		copy(one[i:], []byte{0, 0, 0x80, 0x3f})
	}
	s.add(gguf.TensorInfo{Name: name + ".weight", Type: tensor.F32, Dims: []uint64{uint64(n)}}, gguf.Bytes(one))
}

func (s *synthesizer) matrix(name, part string, layer, rows, cols int) {
	s.stack(name, part, layer, 0, rows, cols)
}

// stack is n matrices in one tensor; 0 stands for one that is no stack.
func (s *synthesizer) stack(name, part string, layer, n, rows, cols int) {
	t := s.mix.of(part, layer, s.shape.layers)
	for t.BlockSize() > 0 && cols%t.BlockSize() != 0 {
		n, ok := narrower[t]
		if !ok {
			n = tensor.F16
		}
		t = n
	}
	bank, err := s.bank(t)
	if err != nil {
		s.err = err
		return
	}
	s.n++
	dims := []uint64{uint64(cols), uint64(rows)}
	if n > 0 {
		dims = append(dims, uint64(n))
	}
	s.add(gguf.TensorInfo{Name: name + ".weight", Type: t, Dims: dims},
		&randomBlocks{bank: bank, block: t.BlockBytes(), size: max(n, 1) * rows * t.RowBytes(cols), seed: s.seed, tensor: s.n})
}

func (s *synthesizer) add(t gguf.TensorInfo, data io.WriterTo) {
	if err := s.b.AddTensor(t, data); err != nil && s.err == nil {
		s.err = err
	}
}

// bankValues is how many random values are encoded for each type; tensors are
// put together from their blocks.
const bankValues = 1 << 16

// bank returns encoded blocks of normal values with the spread of trained
// weights.
func (s *synthesizer) bank(t tensor.DType) ([]byte, error) {
	if b, ok := s.banks[t]; ok {
		return b, nil
	}
	rng := rand.New(rand.NewPCG(s.seed, uint64(t)))
	x := make([]float32, bankValues)
	for i := range x {
		x[i] = float32(rng.NormFloat64()) * 0.02
	}
	b := make([]byte, t.RowBytes(len(x)))
	if err := t.Encode(b, x); err != nil {
		return nil, fmt.Errorf("bench: synthetic model: %w", err)
	}
	s.banks[t] = b
	return b, nil
}

// randomBlocks is a tensor put together from runs of blocks at random places
// of a bank.
type randomBlocks struct {
	bank         []byte
	block, size  int
	seed, tensor uint64
}

// pieceBytes is about how much one processor makes at a time.
const pieceBytes = 4 << 20

// WriteTo writes the tensor, made by all processors in turn with the writing.
func (r *randomBlocks) WriteTo(w io.Writer) (int64, error) {
	piece := max(1, pieceBytes/r.block) * r.block
	bufs := make([][]byte, runtime.GOMAXPROCS(0))
	done := int64(0)
	for at := 0; at < r.size; {
		var wg sync.WaitGroup
		n := 0
		for ; n < len(bufs) && at < r.size; n++ {
			b := slices.Grow(bufs[n][:0], piece)[:min(piece, r.size-at)]
			bufs[n] = b
			stream := r.tensor<<32 | uint64(at/piece)
			wg.Go(func() { r.fill(b, stream) })
			at += len(b)
		}
		wg.Wait()
		for _, b := range bufs[:n] {
			k, err := w.Write(b)
			done += int64(k)
			if err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

func (r *randomBlocks) fill(b []byte, stream uint64) {
	const run = 32 // blocks
	rng := rand.New(rand.NewPCG(r.seed, stream))
	places := len(r.bank)/r.block - run
	for len(b) > 0 {
		at := rng.IntN(places) * r.block
		b = b[copy(b, r.bank[at:at+run*r.block]):]
	}
}
