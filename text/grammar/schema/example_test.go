package schema_test

import (
	"fmt"

	"ridge/text/grammar"
	"ridge/text/grammar/schema"
)

func Example() {
	pieces := []string{"{", "}", `"`, ":", ",", "answer", "yes", "no", "maybe", "<end>"}
	const end = 9
	v := grammar.NewVocabulary(func(id int32) []byte { return []byte(pieces[id]) }, len(pieces), []int32{end}, nil)
	source := `{"type":"object","properties":{"answer":{"enum":["yes","no"]}},"required":["answer"]}`
	g, err := schema.Compile(v, []byte(source), schema.Options{Whitespace: schema.Compact})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := g.NewState()
	fmt.Printf("%s\n", s.Forced())
	for !s.Done() {
		logits := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 0} // wants to say maybe
		s.Mask(logits)
		best := int32(0)
		for id := range logits {
			if logits[id] > logits[best] {
				best = int32(id)
			}
		}
		if err := s.Accept(best); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(pieces[best])
	}
	fmt.Println()
	_, err = schema.Compile(v, []byte(`{"items":{"$dynamicRef":"#x"}}`), schema.Options{})
	fmt.Println(err)
	// Output:
	// {"answer":"
	// {"answer":"no"}
	// grammar: schema: #/items: "$dynamicRef": keyword not supported
}
