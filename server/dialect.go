package server

import (
	"net/http"
	"strings"

	"ridge/server/anthropic"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/ollama"
	"ridge/server/openai"
	"ridge/server/wire"
)

// promptField is the field of a path's requests that has the prompt.
func promptField(path string) string {
	switch {
	case strings.Contains(path, "embed"), strings.HasSuffix(path, "/responses"):
		return "input"
	case strings.Contains(path, "/chat"), dialectOf(path) == speaksAnthropic:
		return "messages"
	case strings.Contains(path, "rerank"):
		return "documents"
	case strings.HasSuffix(path, "/score"):
		return "text_2"
	}
	return "prompt"
}

// dialect is the API that a route belongs to.
type dialect int

const (
	speaksOpenAI dialect = iota
	speaksOllama
	speaksAnthropic
)

// dialectOf tells which API's errors a path wants.
func dialectOf(path string) dialect {
	switch {
	case len(path) >= 5 && path[:5] == "/api/":
		return speaksOllama
	case len(path) >= 12 && path[:12] == "/v1/messages":
		return speaksAnthropic
	}
	return speaksOpenAI
}

// writeError answers with an error in the dialect of the request's path.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := fault.As(err)
	caller.Note(r.Context(), func(l *caller.Record) { l.Err = err })
	if e.Code == fault.CodeContext {
		e.Param = promptField(r.URL.Path)
	}
	status := e.Status
	e.SetRetry(w.Header())
	var body any
	switch dialectOf(r.URL.Path) {
	case speaksOllama:
		body = ollama.Error(e)
	case speaksAnthropic:
		if status == http.StatusServiceUnavailable {
			status = 529
		}
		body = anthropic.Error(e, caller.RequestID(r.Context()))
	default:
		body = openai.Error(e)
	}
	wire.WriteJSON(w, status, body)
}
