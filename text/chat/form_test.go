package chat

import "testing"

// tokens is a vocabulary that has the given tokens.
type tokens []string

func (v tokens) ID(text string) (int32, bool) {
	for i, t := range v {
		if t == text {
			return int32(i), true
		}
	}
	return -1, false
}

func TestFormOf(t *testing.T) {
	for _, c := range []struct {
		arch, name string
		marks      tokens
		want       string
		known      bool
	}{
		{"llama", "", tokens{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, "llama3", true},
		{"llama", "", tokens{"<|im_start|>", "<|im_end|>"}, "chatml", true},
		{"phi3", "", tokens{"<|im_start|>", "<|im_end|>", "<|im_sep|>"}, "phi4", true},
		{"phi3", "", tokens{"<|user|>", "<|assistant|>", "<|end|>", "<|system|>"}, "phi3", true},
		{"llama", "", tokens{"[INST]", "[/INST]", "[TOOL_CALLS]"}, "mistral", true},
		{"llama", "Mistral 7B Instruct v0.2", tokens{"<s>", "</s>"}, "mistral", true},
		{"llama", "LLaMA-2-7b-chat", tokens{"<s>", "</s>"}, "llama2", true},
		{"gemma3", "", tokens{"<start_of_turn>", "<end_of_turn>"}, "gemma", true},
		{"granite", "", tokens{"<|start_of_role|>", "<|end_of_role|>"}, "granite", true},
		{"command-r", "", tokens{"<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>"}, "commandr", true},
		{"stablelm", "", tokens{"<|user|>", "<|assistant|>"}, "zephyr", true},
		{"llama", "", tokens{"<s>", "</s>"}, "chatml", false},
		{"gemma2", "", nil, "gemma", false},
	} {
		f := FormOf(c.arch, c.name, c.marks)
		if f.Name != c.want || f.Known != c.known || f.Source != Default(c.want) {
			t.Errorf("%s %q %q: %s, known %v, want %s, %v", c.arch, c.name, c.marks, f.Name, f.Known, c.want, c.known)
		}
	}
}

// The forms that FormOf adds, as llama.cpp writes them.
func TestForms(t *testing.T) {
	turns := []Message{
		{Role: "system", Content: "You are a helpful assistant"}, {Role: "user", Content: "Hello"},
		{Role: "assistant", Content: "Hi there"}, {Role: "user", Content: "Another question"},
	}
	for name, want := range map[string]string{
		"granite": "<|start_of_role|>system<|end_of_role|>You are a helpful assistant<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Hello<|end_of_text|>\n" +
			"<|start_of_role|>assistant<|end_of_role|>Hi there<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Another question<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>",
		"phi4": "<|im_start|>system<|im_sep|>You are a helpful assistant<|im_end|><|im_start|>user<|im_sep|>Hello<|im_end|><|im_start|>assistant<|im_sep|>Hi there<|im_end|>" +
			"<|im_start|>user<|im_sep|>Another question<|im_end|><|im_start|>assistant<|im_sep|>",
		"commandr": "<BOS><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>You are a helpful assistant<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hello<|END_OF_TURN_TOKEN|>" +
			"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Hi there<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Another question<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
	} {
		got, err := mustCompile(t, Default(name), Options{BOS: "<BOS>"}).Render(Input{Messages: turns, AddGenerationPrompt: true})
		if err != nil || got != want {
			t.Errorf("%s: %v\ngot  %q\nwant %q", name, err, got, want)
		}
	}
}
