// Package ollama answers in Ollama's API: chat, generate, embeddings, and what its
// clients do with models: list, show, pull, copy, create and delete them.
package ollama
