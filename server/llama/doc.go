// Package llama answers on the routes of llama-server and vLLM that are not
// OpenAI's: tokens, templates, properties, slots and their sessions, completion
// and infill.
package llama
