package chat

import (
	"slices"
	"strings"
)

// Form is the format of a conversation for a model that brings no template.
type Form struct {
	Name   string // chatml, llama3, …
	Source string // of the template
	// Known says that the marks of the vocabulary, or the model's name, tell the
	// form. Else it is a guess, and answers may make no sense.
	Known bool
}

// forms are those that a vocabulary is known by, the ones with more marks of their
// own first.
var forms = []struct {
	name  string
	marks []string
}{
	{"llama3", []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
	{"phi4", []string{"<|im_start|>", "<|im_sep|>", "<|im_end|>"}},
	{"chatml", []string{"<|im_start|>", "<|im_end|>"}},
	{"gemma", []string{"<start_of_turn>", "<end_of_turn>"}},
	{"granite", []string{"<|start_of_role|>", "<|end_of_role|>"}},
	{"commandr", []string{"<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>"}},
	{"phi3", []string{"<|user|>", "<|assistant|>", "<|end|>"}},
	{"zephyr", []string{"<|user|>", "<|assistant|>"}},
	{"mistral", []string{"[INST]", "[/INST]"}},
}

// named are forms without marks in the vocabulary, known by the names of models.
var named = []struct{ part, form string }{
	{"mixtral", "mistral"}, {"mistral", "mistral"}, {"llama-2", "llama2"}, {"llama2", "llama2"}, {"llama 2", "llama2"}, {"zephyr", "zephyr"},
}

// FormOf returns the form for a model of an architecture as GGUF spells it, of the
// given name, which may be "", and with the vocabulary of tok.
func FormOf(arch, name string, tok interface {
	ID(text string) (id int32, ok bool)
}) Form {
	lacks := func(mark string) bool { _, ok := tok.ID(mark); return !ok }
	for _, f := range forms {
		if !slices.ContainsFunc(f.marks, lacks) {
			return Form{f.name, Default(f.name), true}
		}
	}
	name = strings.ToLower(name)
	for _, n := range named {
		if arch == "llama" && strings.Contains(name, n.part) {
			return Form{n.form, Default(n.form), true}
		}
	}
	return Form{formName(arch), Default(arch), false}
}
