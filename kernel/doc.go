// Package kernel holds the arithmetic that a model spends its time in: dot
// products of packed quantized weights with rows of activations, norms,
// activations, rotary embeddings, softmax and attention over key/value tiles.
//
// Every operation has a definition in plain Go and assembly for the
// instruction-set tiers of internal/cpu; the tier in use is looked up at the
// top of each operation, nowhere else. No result depends on how work is cut:
// the value for one row and one output is the same, bit for bit, for any
// number of rows and any split of rows and outputs.
package kernel

// The generators are a module of their own, so that the product does not
// depend on them.
//
//go:generate go -C _asm run ./gemm -out ../gemm_amd64.s -stubs ../gemm_stubs_amd64.go -table ../gemm_table_amd64.go -pkg kernel
//go:generate go -C _asm run ./neon -out ../neon_arm64.s -stubs ../neon_stubs_arm64.go -other ../neon_stubs_other.go -table ../neon_table_arm64.go -attn ../neon_attn_table.go
