package model

import "fmt"

// Act says how activations are kept that are multiplied with quantized
// matrices. Those that are multiplied with matrices of floats stay float32.
type Act int

// The choices.
const (
	ActInt8  Act = iota // 8 bits and a scale for 32 values, as most engines have them
	ActInt16            // 8 bits, and 8 more for what these leave: 15 in all, for twice the products
)

var actNames = [...]string{ActInt8: "int8", ActInt16: "int16"}

// String returns the name that ParseAct reads.
func (a Act) String() string {
	if a.valid() {
		return actNames[a]
	}
	return fmt.Sprintf("Act(%d)", int(a))
}

func (a Act) valid() bool { return a >= 0 && int(a) < len(actNames) }

// Planes returns how many quantized rows a row of activations has.
func (a Act) Planes() int { return int(a) + 1 }

// ParseAct returns the choice of the given name, ActInt8 for "".
func ParseAct(name string) (Act, error) {
	if name == "" {
		return ActInt8, nil
	}
	for a, n := range actNames {
		if n == name {
			return Act(a), nil
		}
	}
	return 0, fmt.Errorf("model: activations: expected int8 or int16, found %q", name)
}
