package llama

import (
	"ridge/server/openai"
	"ridge/server/wire"
)

// API are the routes of llama-server and vLLM that are not OpenAI's.
type API struct {
	*wire.Door
	Version string // of the program
	Data    string // folder of sessions; "": there are none
}

// New returns the API. data is a folder for sessions, "" for none.
func New(d *wire.Door, version, data string) (*API, error) {
	s := &API{d, version, data}
	if data == "" {
		return s, nil
	}
	return s, openSessions(data)
}

// Routes are the API's, by their patterns.
func (s *API) Routes() map[string]wire.Handler {
	return map[string]wire.Handler{
		"GET /props": s.props, "GET /slots": s.slots, "POST /slots/{id}": s.session, "GET /version": s.version, "GET /load": s.load, "POST /reset_prefix_cache": s.resetPrefixes,
		"POST /tokenize": s.tokenize, "POST /detokenize": s.detokenize, "POST /apply-template": s.applyTemplate, "POST /v1/chat/completions/render": s.applyTemplate,
		"GET /tokenizer_info": s.tokenizerInfo, "POST /infill": s.infill, "POST /embedding": s.rawEmbedding, "POST /embeddings": s.rawEmbedding,
		"POST /completion": s.completion, "POST /completions": s.completion, "GET /lora-adapters": s.listAdapters, "POST /lora-adapters": s.scaleAdapters,
		"POST /v1/load_lora_adapter": s.loadAdapter, "POST /v1/unload_lora_adapter": s.unloadAdapter,
		"POST /{$}": s.tgiRoot, "POST /generate": s.tgiGenerate, "POST /generate_stream": s.tgiStream,
	}
}

// Bodies are values of the types that routes read, by their patterns.
func Bodies() map[string]any {
	return map[string]any{
		"POST /completion": request{}, "POST /completions": request{}, "POST /apply-template": openai.ChatRequest{}, "POST /v1/chat/completions/render": openai.ChatRequest{},
		"POST /embedding": wire.EmbeddingRequest{}, "POST /generate": tgiRequest{}, "POST /generate_stream": tgiRequest{}, "POST /{$}": tgiRequest{},
		"POST /tokenize": tokenizeRequest{}, "POST /detokenize": detokenizeRequest{}, "POST /infill": infillRequest{}, "POST /slots/{id}": action{},
		"POST /v1/load_lora_adapter": loadRequest{}, "POST /v1/unload_lora_adapter": unloadRequest{}, "POST /lora-adapters": openai.AdapterScales{},
	}
}
