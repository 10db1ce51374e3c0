package openai

import "ridge/server/fault"

// Error is an error as OpenAI's API has it. Param and code are null and not
// absent where there is none.
func Error(e *fault.Error) any {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    any     `json:"code"`
		// of llama-server, with prompts that do not fit
		Tokens  int `json:"n_prompt_tokens,omitempty"`
		Context int `json:"n_ctx,omitempty"`
	}
	in := inner{Message: e.Message, Type: e.Type, Tokens: e.Tokens, Context: e.Context}
	if e.Param != "" {
		in.Param = &e.Param
	}
	switch {
	case e.Code != "":
		in.Code = e.Code
	case e.Type == "unavailable_error":
		in.Code = e.Status // as llama-server does
	}
	return struct {
		Error inner `json:"error"`
	}{in}
}
