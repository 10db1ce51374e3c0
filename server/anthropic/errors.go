package anthropic

import (
	"net/http"

	"ridge/server/fault"
)

// Error is an error as Anthropic's API has it.
func Error(e *fault.Error, requestID string) any {
	typ := "api_error"
	if e.Status < 500 {
		typ = "invalid_request_error"
	}
	switch e.Status {
	case http.StatusUnauthorized:
		typ = "authentication_error"
	case http.StatusForbidden:
		typ = "permission_error"
	case http.StatusNotFound:
		typ = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		typ = "request_too_large"
	case http.StatusTooManyRequests:
		typ = "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		typ = "overloaded_error"
	}
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return struct {
		Type      string `json:"type"`
		Error     inner  `json:"error"`
		RequestID string `json:"request_id"`
	}{"error", inner{typ, e.Message}, requestID}
}
