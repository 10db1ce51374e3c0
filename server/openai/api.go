package openai

import (
	"log/slog"

	"ridge/server/wire"
)

// API is OpenAI's API, with the additions of vLLM, SGLang and llama-server,
// and with routes for rerankers.
type API struct {
	*wire.Door
	memory  memory
	running running
}

// New returns the API. Answers that later requests may go on from are kept
// in dir, "" for only as long as the program runs.
func New(d *wire.Door, dir string, log *slog.Logger) (*API, error) {
	s := &API{Door: d}
	if dir == "" {
		return s, nil
	}
	return s, s.memory.open(dir, log)
}

// Routes are the API's, by their patterns.
func (s *API) Routes() map[string]wire.Handler {
	return map[string]wire.Handler{
		"POST /v1/chat/completions": s.chatCompletions,
		"POST /v1/completions":      s.completions,
		"POST /v1/embeddings":       s.embeddings,
		"GET /v1/models":            s.listModels,
		"GET /v1/models/{id...}":    s.getModel,
		"POST /v1/responses":        s.responses,
		"GET /v1/responses/{id}":    s.getResponse,
		"DELETE /v1/responses/{id}": s.deleteResponse, "POST /v1/responses/input_tokens": s.countInput,
		// rerankers
		"POST /v1/rerank": s.rerank, "POST /v2/rerank": s.rerank, "POST /rerank": s.rerank, "POST /reranking": s.rerank, "POST /v1/reranking": s.rerank,
		"POST /v1/score": s.score, "POST /score": s.score, "POST /pooling": s.pool, "POST /classify": s.classify, "POST /embed": s.embedTEI,
		// for clients whose base address lacks /v1, as llama-server has them
		"POST /chat/completions": s.chatCompletions, "GET /models": s.listModels,
		"POST /responses": s.responses, "POST /responses/input_tokens": s.countInput, "POST /responses/compact": s.compact,
		"POST /v1/responses/compact": s.compact, "POST /v1/responses/{id}/cancel": s.cancelResponse, "GET /v1/responses/{id}/input_items": s.inputItems,
		"POST /v1/chat/completions/input_tokens": s.countChat, "POST /chat/completions/input_tokens": s.countChat,
	}
}

// Bodies are values of the types that routes read, by their patterns.
func Bodies() map[string]any {
	return map[string]any{
		"POST /v1/chat/completions": ChatRequest{}, "POST /v1/chat/completions/input_tokens": ChatRequest{},
		"POST /v1/completions": completionRequest{}, "POST /v1/embeddings": wire.EmbeddingRequest{}, "POST /pooling": wire.EmbeddingRequest{},
		"POST /v1/responses": responsesRequest{}, "POST /v1/responses/input_tokens": responsesRequest{}, "POST /v1/responses/compact": responsesRequest{},
		"POST /v1/rerank": rerankRequest{}, "POST /v1/score": scoreRequest{}, "POST /classify": classifyRequest{}, "POST /embed": teiEmbedRequest{},
	}
}
