// Package openai answers in OpenAI's API: chat completions, completions,
// responses, embeddings and the list of models, with the fields that vLLM, SGLang
// and llama-server add to it, and with the routes of rerankers.
package openai
