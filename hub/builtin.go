package hub

import "ridge/internal/builtin"

// OwnerProgram owns the models that are part of the program. Their only file
// is not on disk: its name stands for it wherever ridge opens models.
const OwnerProgram Owner = "part of ridge"

// EmbeddedName is the name of the embedded model that answers when there is
// no other and no network.
const EmbeddedName = "tiny"

func builtinModel(b builtin.Model) *Model {
	return &Model{
		Name: b.Name, Ref: b.Path, Files: []string{b.Path}, Source: b.Source, License: b.License, Note: b.Note, Quant: b.Quant, Size: b.Size,
		Owner: OwnerProgram,
	}
}

func listBuiltin() []Model {
	var out []Model
	for _, b := range builtin.List() {
		out = append(out, *builtinModel(b))
	}
	return out
}
