package model

import (
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// Outline is what the headers of a model's files tell, without its weights.
type Outline struct {
	Config Config
	// Net has the shapes of the network's matrices, and no weights: it says what
	// would be read.
	Net *Net
	// Embedding is the matrix whose rows are looked up. It stays in the mapped
	// file; a tied output matrix is a packed copy of it.
	Embedding  tensor.Mat
	Parameters int64  // number of weights
	VectorSize int64  // bytes of norms and biases, kept as float32
	FileType   string // what a GGUF file says of its quantization, such as "Q4_K_M"; "" if nothing
}

// ReadOutline reads the outline of the model at path, which Open would open,
// in little time and memory. Its errors are those of Open.
func ReadOutline(path string) (*Outline, error) {
	m := &Model{path: path}
	defer m.Close()
	if err := m.openSource(); err != nil {
		return nil, err
	}
	if s, ok := m.src.(*hfSource); ok {
		s.outline()
	}
	net, b, err := m.shapes()
	if err != nil {
		return nil, err
	}
	net.Embed.Tokens.Data, net.Embed.Positions.Data = nil, nil // the files are closed
	if t := net.Embed.PerLayer; t != nil {
		t.Tokens.Data = nil
	}
	out := &Outline{Config: *b.c, Net: net, Parameters: b.w.params, Embedding: net.Embed.Tokens, VectorSize: vectorBytes(net, b)}
	if m.gg != nil {
		out.FileType = fileType(m.gg)
	}
	return out, nil
}

// fileTypes are the values of general.file_type that have a name.
var fileTypes = map[uint64]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
	13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
	21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
	29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
	39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}

// FileType is what a GGUF file says of its quantization, such as "Q4_K_M"; ""
// if it says nothing.
func (m *Model) FileType() string {
	if m.gg == nil {
		return ""
	}
	return fileType(m.gg)
}

func fileType(f *gguf.File) string {
	if _, ok := f.Lookup("general.file_type"); !ok {
		return ""
	}
	return fileTypes[f.Uint("general.file_type", 0)]
}
