//go:build !amd64

package kernel

// attnBrain is for tile registers, which only some processors have.
type attnBrain struct{}

func wideTier(*AttnSpec) bool { return false }

func (*attnBrain) load([]float32, *AttnSpec) {}

func (*attnBrain) scores(*attnGroupState, int, int) {}

func (*attnBrain) accumulate(*attnGroupState, attnStates) {}

func (*attnBrain) values(*attnGroupState, int) {}
