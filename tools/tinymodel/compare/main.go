// Command compare judges a student beside its teacher on answers of the teacher
// to prompts that training never saw (files of the corpus command): perplexity,
// how often both choose the same token, and how many tokens a step of the
// teacher yields when the student drafts for it. With -samples it prints the
// answers to twenty simple prompts instead.
//
//	go run ./tools/tinymodel/compare -teacher teacher.gguf -student tiny -sampled held-sampled.bin -greedy held-greedy.bin
//	go run ./tools/tinymodel/compare -student tiny -samples
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"

	"ridge"
	"ridge/engine"
	"ridge/kernel"
)

func main() {
	teacher := flag.String("teacher", "", "the teacher: a name or a path")
	student := flag.String("student", "tiny", "the student: a name or a path")
	sampled := flag.String("sampled", "", "held-out answers drawn at a temperature: perplexity")
	greedy := flag.String("greedy", "", "held-out greedy answers: agreement and drafting")
	samples := flag.Bool("samples", false, "print answers to simple prompts as a page")
	flag.Parse()
	var err error
	if *samples {
		err = printSamples(*student)
	} else {
		err = compare(*student, *teacher, *sampled, *greedy)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare(student, teacher, sampled, greedy string) error {
	ctx := context.Background()
	s, err := ridge.Open(ctx, student, ridge.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	names, models := []string{student}, []*ridge.Model{s}
	if teacher != "" {
		t, err := ridge.Open(ctx, teacher, ridge.Options{})
		if err != nil {
			return err
		}
		defer t.Close()
		names, models = append(names, teacher), append(models, t)
	}
	if sampled != "" {
		docs, err := readDocuments(sampled)
		if err != nil {
			return err
		}
		for i, m := range models {
			sum, n := 0.0, 0
			for _, d := range docs {
				ps, err := score(ctx, m, d)
				if err != nil {
					return err
				}
				for _, p := range ps {
					sum -= math.Log(float64(max(p.prob, 1e-30)))
				}
				n += len(ps)
			}
			fmt.Printf("%s: perplexity %.3f of %d held-out tokens\n", names[i], math.Exp(sum/float64(n)), n)
		}
	}
	if greedy == "" {
		return nil
	}
	docs, err := readDocuments(greedy)
	if err != nil {
		return err
	}
	return drafting(ctx, s, docs)
}

// drafting counts how often the student's first choice is the teacher's, and
// what chains of such choices are worth: each step of the teacher checks a
// chain and adds a token of its own.
func drafting(ctx context.Context, m *ridge.Model, docs []document) error {
	depths := []int{1, 2, 3, 4, 6, 8}
	tokens := make([]int, len(depths))
	steps := make([]int, len(depths))
	same, n := 0, 0
	for _, d := range docs {
		ps, err := score(ctx, m, d)
		if err != nil {
			return err
		}
		hit := make([]bool, len(ps))
		for i, p := range ps {
			hit[i] = p.first
		}
		n += len(hit)
		for _, h := range hit {
			if h {
				same++
			}
		}
		for i, depth := range depths {
			for at := 0; at < len(hit); steps[i]++ {
				k := 0
				for k < depth && at+k < len(hit) && hit[at+k] {
					k++
				}
				k = min(k+1, len(hit)-at)
				tokens[i] += k
				at += k
			}
		}
	}
	fmt.Printf("greedy agreement %.1f%% of %d tokens\n", 100*float64(same)/float64(n), n)
	for i, depth := range depths {
		fmt.Printf("drafts of %d: %.2f tokens a step\n", depth, float64(tokens[i])/float64(steps[i]))
	}
	return nil
}

// document is one record of a corpus file, without its targets.
type document struct {
	tokens  []int32
	learned []byte
}

func readDocuments(path string) ([]document, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []document
	for len(b) >= 2 {
		n := int(binary.LittleEndian.Uint16(b))
		if len(b) < 2+3*n {
			break
		}
		d := document{tokens: make([]int32, n), learned: b[2+2*n : 2+3*n]}
		targets := 0
		for i := range n {
			d.tokens[i] = int32(binary.LittleEndian.Uint16(b[2+2*i:]))
			targets += int(d.learned[i])
		}
		end := 2 + 3*n + targets*64
		if len(b) < end {
			break
		}
		out, b = append(out, d), b[end:]
	}
	return out, nil
}

// prediction is what a model thought of a token that came.
type prediction struct {
	prob  float32
	first bool // it was the most probable one
}

// score returns the predictions of the learned tokens of d, in order.
func score(ctx context.Context, m *ridge.Model, d document) ([]prediction, error) {
	all := make([]prediction, len(d.tokens))
	s, err := m.Engine().Submit(ctx, engine.Request{Tokens: d.tokens, MaxTokens: -1, PromptLogits: func(at int, logits []float32) {
		if d.learned[at] == 1 {
			p, tok := slices.Clone(logits), d.tokens[at]
			kernel.SoftmaxInPlace(p)
			all[at] = prediction{p[tok], kernel.Argmax(p) == int(tok)}
		}
	}})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if ev, _ := s.Next(ctx); ev.Finish != engine.FinishLength {
		return nil, errors.Join(fmt.Errorf("scores: expected the end of the prompt, found %q", ev.Finish), ev.Err, ctx.Err())
	}
	var out []prediction
	for at, p := range all {
		if at > 0 && d.learned[at] == 1 {
			out = append(out, p)
		}
	}
	return out, nil
}
