package bench

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"ridge/measure/roofline"
)

// maxList bounds the numbers that one flag stands for.
const maxList = 1000

// ParseInts reads numbers as llama-bench does: separated by commas, each a
// number or a range "first-last", "first-last+step" or "first-last*factor".
func ParseInts(s string) ([]int, error) {
	var out []int
	for _, part := range strings.Split(s, ",") {
		list, err := parseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if out = append(out, list...); len(out) > maxList {
			return nil, fmt.Errorf("expected at most %d numbers, found more in %q", maxList, s)
		}
	}
	return out, nil
}

func parseRange(s string) ([]int, error) {
	wrong := fmt.Errorf("expected a number, or a range such as 1-8, 128-512+128 or 1-32*2, found %q", s)
	number := func(s string) (int, bool) {
		n, err := strconv.Atoi(s)
		return n, err == nil && n >= 0 && n <= math.MaxInt32
	}
	first, rest, isRange := strings.Cut(s, "-")
	lo, ok := number(first)
	if !ok {
		return nil, wrong
	}
	if !isRange {
		return []int{lo}, nil
	}
	step, factor, last := 1, 1, rest
	if i := strings.IndexAny(rest, "+*"); i >= 0 {
		last = rest[:i]
		n, ok := number(rest[i+1:])
		if !ok || n < 1 || rest[i] == '*' && (n < 2 || lo < 1) {
			return nil, wrong
		}
		if rest[i] == '*' {
			step, factor = 0, n
		} else {
			step = n
		}
	}
	hi, ok := number(last)
	if !ok || hi < lo {
		return nil, wrong
	}
	var out []int
	for n := lo; n <= hi; n = n*factor + step {
		if out = append(out, n); len(out) > maxList {
			return nil, fmt.Errorf("expected at most %d numbers, found more in %q", maxList, s)
		}
	}
	return out, nil
}

// Grid is what llama-bench's flags describe: prompts, generations and both
// together, each at every depth, with every number of sequences and rows.
type Grid struct {
	Prompts, Gens []int // 0 is for none
	Pairs         [][2]int
	Depths        []int
	Seqs          []int
	Chunks        []int
}

// Works lists the works of the grid.
func (g Grid) Works() []roofline.Work {
	var out []roofline.Work
	one := func(x []int, def int) []int {
		if len(x) == 0 {
			return []int{def}
		}
		return x
	}
	for _, chunk := range one(g.Chunks, 0) {
		for _, seqs := range one(g.Seqs, 1) {
			for _, depth := range one(g.Depths, 0) {
				add := func(prompt, gen int) {
					if prompt > 0 || gen > 0 {
						out = append(out, roofline.Work{Prompt: prompt, Gen: gen, Depth: depth, Seqs: seqs, Chunk: chunk})
					}
				}
				for _, n := range g.Prompts {
					add(n, 0)
				}
				for _, n := range g.Gens {
					add(0, n)
				}
				for _, p := range g.Pairs {
					add(p[0], p[1])
				}
			}
		}
	}
	return out
}

// ParsePair reads "prompt,gen".
func ParsePair(s string) ([2]int, error) {
	n, err := ParseInts(s)
	if err != nil || len(n) != 2 {
		return [2]int{}, fmt.Errorf("expected PROMPT,GENERATED such as 512,128, found %q", s)
	}
	return [2]int{n[0], n[1]}, nil
}

// workName is what roofline.Work's String gives: at most seven digits for a number
// of tokens, more than any model's context has.
var workName = regexp.MustCompile(`^(?:pp([1-9][0-9]{0,6})(?:\+tg([1-9][0-9]{0,6}))?|tg([1-9][0-9]{0,6}))(?: @ d([1-9][0-9]{0,6}))?(?: x([1-9][0-9]{0,3}))?$`)

// ParseWork reads the name of a work as roofline.Work's String writes it: "pp512",
// "tg128", "pp512+tg128", each possibly with " @ d4096" and then " x8".
func ParseWork(name string) (roofline.Work, error) {
	m := workName.FindStringSubmatch(name)
	if m == nil {
		return roofline.Work{}, fmt.Errorf("expected a test such as pp512, tg64, pp512+tg64, tg32 @ d4096 or tg32 @ d128 x8, found %q", clip(name, 80))
	}
	number := func(s string) int {
		n, _ := strconv.Atoi(s) // digits, or nothing, which is 0
		return n
	}
	return roofline.Work{Prompt: number(m[1]), Gen: number(m[2]) + number(m[3]), Depth: number(m[4]), Seqs: max(number(m[5]), 1)}, nil
}
