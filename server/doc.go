// Package server answers HTTP requests in the dialects that clients speak:
// OpenAI's, Ollama's, Anthropic's, and the extra routes of llama-server and
// vLLM. It is what they have in common at the door: routes, keys, limits, sizes,
// times, metrics, traces, and the batches that run requests of others.
//
// The way of a request: guard.go → a handler of its dialect (openai, ollama,
// anthropic, llama), which reads the body (wire) into a run.Chat or a
// run.Completion → a run.Plan: prompt, sampling, grammar, stops → run.Runner: the
// engine's events become deltas of text → the handler writes them in its dialect,
// whole or as a stream. docs/server.md describes every route.
//
// Whatever a client sends, the answer is one of its own making: a bad request
// is a 400 that names the field, what was expected and what was found (fault). A
// panic ends in a 500 with the request's id, and in the log.
package server
