package model

import (
	"path/filepath"
	"testing"

	"ridge/weights/tensor"
)

// withExperts are tiny models with experts, one of each kind of router or mixer.
var withExperts = []string{"glm4moe", "ernie4_5-moe", "llama4", "afmoe", "hunyuan-moe", "phimoe", "smallthinker", "arctic", "gemma4-moe"}

// One answer, of models whose rows choose experts: the choices of other rows in a
// batch do not matter.
func TestOneAnswerOfExperts(t *testing.T) {
	for _, name := range withExperts {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, filepath.Join(tinyModels, name))
			oneAnswer(t, filepath.Join(tinyModels, name), g.Prompt, g.Context, 2, Options{KV: tensor.F16})
			oneAnswer(t, filepath.Join(tinyModels, name), g.Prompt, g.Context, 2, Options{KV: tensor.Q8_0})
		})
	}
}
