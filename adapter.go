package ridge

import "ridge/model"

// ReadAdapter reads a LoRA adapter of the model: a folder that Hugging Face's PEFT has
// written (adapter_config.json and adapter_model.safetensors), or a GGUF file of
// llama.cpp's converter. One that is for another model is refused. Answers of different
// adapters are computed together; see Adapter.Scaled and Adapter.With of package model
// for parts and sums of them.
func (m *Model) ReadAdapter(path string) (*model.Adapter, error) { return m.e.ReadAdapter(path) }

// ReadControl reads a control vector of the model in llama.cpp's GGUF form, for the layers
// from first to last; below 1 these are all that it has. It is an adapter like others.
func (m *Model) ReadControl(path string, first, last int) (*model.Adapter, error) {
	return m.e.ReadControl(path, first, last)
}
