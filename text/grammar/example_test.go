package grammar_test

import (
	"fmt"

	"ridge/text/grammar"
)

// A language of one's own adds its rules to a Builder: here lists in brackets,
// of lists and digits.
func ExampleBuilder() {
	b := &grammar.Builder{Source: "lists"}
	list := b.Rule("list")
	item, after := list.State(), list.State()
	list.Text(list.Start, "[", item)
	list.Bytes(item, '0', '9', after)
	list.Call(item, list, after)
	list.Text(after, ",", item)
	list.Text(after, "]", list.End)
	g, err := b.Compile(list, nil, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"[1]", "[[1,2],3]", "[1,]"} {
		s := g.NewState()
		err := s.AcceptBytes([]byte(text))
		fmt.Println(text, err == nil && s.Complete())
	}
	// Output:
	// [1] true
	// [[1,2],3] true
	// [1,] false
}
