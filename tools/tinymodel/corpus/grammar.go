package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
)

//go:embed prompts.txt
var promptText []byte

// grammar is the set of prompts: templates with weights, and the lists of
// words that fill them.
type grammar struct {
	lists     map[string][]string
	templates []string
	weights   []int
	total     int
}

// readGrammar reads the prompts. A line "@name: a | b | c" is a list, a line
// "N template" a template drawn with weight N; in both {name} stands for an
// entry of that list and {a name} for one with its article. A template that
// starts with ">" is plain text to go on with, not a question.
func readGrammar() (*grammar, error) {
	g := &grammar{lists: map[string][]string{}}
	for i, line := range bytes.Split(promptText, []byte("\n")) {
		s := strings.TrimSpace(string(line))
		if s == "" || s[0] == '#' {
			continue
		}
		if s[0] == '@' {
			name, list, _ := strings.Cut(s[1:], ":")
			for e := range strings.SplitSeq(list, "|") {
				g.lists[name] = append(g.lists[name], strings.TrimSpace(e))
			}
			continue
		}
		w, text, _ := strings.Cut(s, " ")
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, fmt.Errorf("prompts.txt:%d: expected a weight, found %q", i+1, w)
		}
		g.templates, g.weights = append(g.templates, text), append(g.weights, n)
		g.total += n
	}
	return g, g.check()
}

// check expands every template once.
func (g *grammar) check() error {
	for _, t := range g.templates {
		for rest := t; ; {
			_, after, ok := strings.Cut(rest, "{")
			if !ok {
				break
			}
			name, tail, _ := strings.Cut(after, "}")
			if len(g.lists[strings.TrimPrefix(name, "a ")]) == 0 {
				return fmt.Errorf("prompts.txt: template %q: list %q: not found", t, name)
			}
			rest = tail
		}
	}
	return nil
}

// prompt draws a prompt; raw says that it is plain text to go on with.
func (g *grammar) prompt(r *rand.Rand) (text string, raw bool) {
	x := r.IntN(g.total)
	for i, w := range g.weights {
		if x -= w; x < 0 {
			text = g.templates[i]
			break
		}
	}
	text, raw = strings.CutPrefix(text, ">")
	text = g.expand(text, r)
	if raw {
		return text, true
	}
	switch r.IntN(24) { // people write carelessly
	case 0:
		text = strings.ToLower(text)
	case 1:
		text = strings.TrimRight(text, ".?!")
	case 2:
		text = strings.ToLower(strings.TrimRight(text, ".?!"))
	}
	return text, false
}

func (g *grammar) followUp(r *rand.Rand) string {
	return g.expand(g.lists["follow"][r.IntN(len(g.lists["follow"]))], r)
}

func (g *grammar) expand(text string, r *rand.Rand) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, "{")
		b.WriteString(before)
		if !ok {
			break
		}
		name, tail, _ := strings.Cut(after, "}")
		list, article := strings.CutPrefix(name, "a ")
		word := g.expand(g.lists[list][r.IntN(len(g.lists[list]))], r)
		if article {
			b.WriteString(articleOf(word) + " ")
		}
		b.WriteString(word)
		text = tail
	}
	s := b.String()
	if s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.ContainsAny(s, ".?!") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

func articleOf(word string) string {
	if strings.ContainsRune("aeiouAEIOU", rune(word[0])) && !strings.HasPrefix(word, "uni") {
		return "an"
	}
	return "a"
}

// isHeldOut puts one prompt in 25 aside for evaluation, by its words alone.
func isHeldOut(text string) bool {
	h := fnv.New32a()
	h.Write([]byte(strings.TrimRight(strings.ToLower(text), ".?! ")))
	return h.Sum32()%25 == 0
}
