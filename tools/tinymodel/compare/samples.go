package main

import (
	"context"
	"fmt"
	"strings"

	"ridge"
	"ridge/sample"
	"ridge/text/chat"
)

// prompts are what a newcomer may ask first.
var prompts = []string{
	"Tell me a story about a dog.",
	"Hello!",
	"What color is the sky?",
	"Why is the sky blue?",
	"Who are you?",
	"Tell me a short story about a brave little mouse.",
	"Write two sentences about winter.",
	"What is the capital of France?",
	"How can I sleep better?",
	"What do cats eat?",
	"Write a poem about the sea.",
	"What is friendship?",
	"Name three fruits.",
	"How do birds fly?",
	"I am sad today.",
	"Tell me about elephants.",
	"Why is reading important?",
	"What is a computer?",
	"Give me a tip for a healthy breakfast.",
	"Thank you and goodbye!",
}

// printSamples prints the answers to prompts as a table of contents would: the
// prompt, the greedy answer, one at temperature 0.7 with seed 1.
func printSamples(name string) error {
	ctx := context.Background()
	m, err := ridge.Open(ctx, name, ridge.Options{})
	if err != nil {
		return err
	}
	defer m.Close()
	for i, p := range prompts {
		fmt.Printf("%d. **%s**\n", i+1, p)
		for _, temp := range []float32{0, 0.7} {
			g := ridge.Generation{MaxTokens: 100, Sampling: sample.Params{Temperature: temp, Seed: 1}}
			var b strings.Builder
			for tok, err := range m.Chat(ctx, []chat.Message{{Role: "user", Content: p}}, g) {
				if err != nil {
					return err
				}
				b.WriteString(tok.Text)
			}
			label := "greedy"
			if temp > 0 {
				label = fmt.Sprint(temp)
			}
			fmt.Printf("   - %s: %s\n", label, strings.Join(strings.Fields(b.String()), " "))
		}
	}
	return nil
}
