package model

import (
	"fmt"
	"slices"
	"strings"
)

// unlike says, of a file of an unknown architecture, which known one is the nearest
// by its name, and what of the file that one does not have or does not find. open
// gives the weights by the names that an architecture uses, and what the file says.
func unlike(name string, names []string, by func(string) *architecture, open func(*architecture, *Config) (source, *description, error)) string {
	near := nearestName(name, names)
	a := by(near)
	if a == nil {
		return ""
	}
	text := fmt.Sprintf("the nearest known is %q", near)
	var c Config
	src, d, err := open(a, &c)
	if err == nil {
		err = a.read(d, &c)
	}
	if err == nil {
		if m, ok, _ := src.mat("token_embd.weight"); ok && !d.hf {
			c.Vocab = m.Rows
		}
		c.defaults()
		err = c.Validate()
	}
	if err != nil {
		return fmt.Sprintf("%s, as which it cannot be read: %v", text, err)
	}
	b := &builder{src: src, c: &c, w: &weights{}, gguf: !d.hf, present: d.present, used: map[string]bool{}, asked: map[string]asked{}, shapes: true}
	a.build(b)
	if b.err != nil {
		return fmt.Sprintf("%s, as which it cannot be built: %v", text, b.err)
	}
	if extra := b.strange(a); len(extra) > 0 {
		return fmt.Sprintf("%s, which has no %s", text, some(extra, 4))
	}
	return text + ", whose tensors it has"
}

// strange returns the parts that tensors of the file have and the network does not,
// each once, sorted.
func (b *builder) strange(a *architecture) (parts []string) {
	for _, name := range b.src.tensors() {
		if b.used[name] || a.passedOver(name) {
			continue
		}
		if layer := b.src.layer(name); layer >= 0 {
			name = strings.Replace(name, fmt.Sprintf(".%d.", layer), ".*.", 1)
		}
		parts = append(parts, name)
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// some lists up to n of the given names.
func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// nearestName returns the name that the fewest changes of letters make name, of
// several the first; letters behind a common beginning count half.
func nearestName(name string, names []string) (best string) {
	least := 1 << 30
	for _, n := range names {
		common := 0
		for common < min(len(n), len(name)) && n[common] == name[common] {
			common++
		}
		if d := 2*edits(name, n) - common; d < least {
			least, best = d, n
		}
	}
	return best
}

// edits returns how many letters must be put in, taken out or changed (Levenshtein
// 1966).
func edits(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := last
			if a[i] != b[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}
