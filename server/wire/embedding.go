package wire

import "ridge/server/run"

// EmbeddingRequest is the body of POST /v1/embeddings. llama-server says
// content for input.
type EmbeddingRequest struct {
	Model      string   `json:"model"`
	Input      Prompts  `json:"input"`
	Content    Prompts  `json:"content"`
	Format     string   `json:"encoding_format"`
	Dimensions *Integer `json:"dimensions"`
	Pooling    string   `json:"pooling"`
	User       Idle     `json:"user"`
	// PromptName is sentence-transformers' name of what goes before texts, Purpose
	// what others say for it: query, document.
	PromptName string `json:"prompt_name"`
	Purpose    string `json:"input_type"`
	Normalize  *bool  `json:"normalize"`
	TruncationFields
}

// Embedding is what the body asks for.
func (b *EmbeddingRequest) Embedding() *run.Embedding {
	texts := b.Input
	if len(texts) == 0 {
		texts = b.Content
	}
	return &run.Embedding{Texts: texts, Pooling: b.Pooling, Prompt: b.PromptName, Purpose: b.Purpose, Raw: b.Normalize != nil && !*b.Normalize, Dimensions: b.Dimensions.Pointer(), Truncate: b.Keep.Pointer(), TruncateSide: b.Side}
}

// TruncationFields say how a prompt that is too long is cut, with vLLM's names.
type TruncationFields struct {
	Keep *Integer `json:"truncate_prompt_tokens"`
	Side string   `json:"truncation_side"`
}
