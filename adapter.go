package ridge

import "ridge/model"

// ReadAdapter reads a LoRA adapter of the model: a folder that Hugging Face's PEFT has
// written (adapter_config.json and adapter_model.safetensors), or a GGUF file of
// llama.cpp's converter. One that is for another model is refused. Answers of different
// adapters are computed together; see Adapter.Scaled and Adapter.With of package model
// for parts and sums of them.
func (m *Model) ReadAdapter(path string) (*model.Adapter, error) { return m.e.ReadAdapter(path) }
