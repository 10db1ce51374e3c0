package ollama

import "ridge/server/fault"

// Error is an error as Ollama's API has it.
func Error(e *fault.Error) any {
	return struct {
		Error string `json:"error"`
	}{e.Message}
}
