package chat

import "embed"

//go:embed templates/*.jinja
var templateFiles embed.FS

// Default returns a template for a model that brings none, by the name of its
// format (chatml, gemma, llama2, llama3, mistral, phi3, zephyr) or of its
// architecture as GGUF spells it. For any other name it is ChatML, the most
// common format. Architectures whose models use various formats (llama) are
// ChatML too: only the format's name says more.
func Default(arch string) string {
	name := "chatml"
	switch arch {
	case "gemma", "gemma2", "gemma3":
		name = "gemma"
	case "llama2", "llama-2":
		name = "llama2"
	case "llama3", "llama-3":
		name = "llama3"
	case "mistral", "mixtral":
		name = "mistral"
	case "phi3":
		name = "phi3"
	case "zephyr", "stablelm":
		name = "zephyr"
	}
	b, err := templateFiles.ReadFile("templates/" + name + ".jinja")
	if err != nil {
		panic("chat: embedded template missing: " + err.Error())
	}
	return string(b)
}
