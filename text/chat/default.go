package chat

import "embed"

//go:embed templates/*.jinja
var templateFiles embed.FS

// Default returns a template for a model that brings none, by the name of its
// format (chatml, commandr, gemma, granite, llama2, llama3, mistral, phi3, phi4,
// rwkv-world, zephyr) or of its architecture as GGUF spells it; see FormOf for what the
// vocabulary tells. For any other name it is ChatML, the most
// common format. Architectures whose models use various formats (llama) are
// ChatML too: only the format's name says more.
func Default(arch string) string {
	name := formName(arch)
	b, err := templateFiles.ReadFile("templates/" + name + ".jinja")
	if err != nil {
		panic("chat: embedded template missing: " + err.Error())
	}
	return string(b)
}

// rwkvWorld is what GGUF files of RWKV have in place of a template.
const rwkvWorld = "rwkv-world"

// formName returns the name of the format for a name that Default takes.
func formName(arch string) string {
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
	case "phi3", "phi4", "granite":
		name = arch
	case "commandr", "command-r", "cohere2":
		name = "commandr"
	case "rwkv7", rwkvWorld:
		name = "rwkv"
	case "zephyr", "stablelm":
		name = "zephyr"
	}
	return name
}
