package ridge_test

import (
	"context"
	"fmt"
	"strings"

	"ridge"
	"ridge/hub"
	"ridge/sample"
	"ridge/text/chat"
)

// tiny is a model of random weights: it shows the calls, not good answers.
const tiny = "internal/tinymodel/testdata/llama/llama.gguf"

func ExampleOpen() {
	m, err := ridge.Open(context.Background(), tiny, ridge.Options{Hub: hub.Options{Offline: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	fmt.Println(m.Config().Arch, m.Context())
	// Output: llama 128
}

func ExampleModel_Generate() {
	m, err := ridge.OpenFile(tiny, ridge.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	var st ridge.Stats
	g := ridge.Generation{MaxTokens: 8, IgnoreEOS: true, Sampling: sample.Params{Temperature: 0.8, TopK: 40, Seed: 1}, Stats: &st}
	var text strings.Builder
	for tok, err := range m.Generate(context.Background(), "ab", g) {
		if err != nil {
			fmt.Println(err)
			return
		}
		text.WriteString(tok.Text)
	}
	fmt.Println(st.Tokens, st.Finish, text.Len() > 0)
	// Output: 8 length true
}

func ExampleModel_Chat() {
	m, err := ridge.OpenFile(tiny, ridge.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	n := 0
	for _, err := range m.Chat(context.Background(), []chat.Message{{Role: "user", Content: "hi"}}, ridge.Generation{MaxTokens: 3}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		n++
	}
	fmt.Println(n > 0)
	// Output: true
}

func ExampleModel_Embed() {
	m, err := ridge.OpenFile(tiny, ridge.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	v, err := m.Embed(context.Background(), "ab cd", ridge.PoolMean)
	fmt.Println(len(v), err)
	// Output: 32 <nil>
}

func ExampleModel_Tokenize() {
	m, err := ridge.OpenFile(tiny, ridge.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	fmt.Println(m.Detokenize(m.Tokenize("ab cd")))
	// Output: ab cd
}
