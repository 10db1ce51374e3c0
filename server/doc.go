// Package server answers HTTP requests in the dialects that clients speak:
// OpenAI's, Ollama's, Anthropic's, and the extra routes of llama-server and
// vLLM. It turns text into tokens for an engine, tokens back into text, tool
// calls and reasoning, and keeps watch at the door: keys, limits, sizes, times.
//
// The way of a request: middleware (guard.go) → a handler of its dialect, which
// reads the body into a chatRequest or a completionRequest → plan (prepare.go,
// complete.go): prompt, sampling, grammar, stops → generation (generate.go):
// the engine's events become deltas of text → the handler writes them in its
// dialect, whole or as a stream. docs/server.md describes every route.
//
// Whatever a client sends, the answer is one of its own making: a bad request
// is a 400 that names the field, what was expected and what was found. A panic
// ends in a 500 with the request's id, and in the log.
package server
