package suite

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ridge/internal/cpu"
	"ridge/internal/pool"
	"ridge/measure/bench"
	"ridge/weights/tensor"
)

// Bounds of what a suite file may ask for.
const (
	maxCases  = 1000
	maxRepeat = 1000
	maxText   = 200 // runes of a title or a name
)

// Parse reads the text of a suite file: a JSON object with "models", by name,
// and "tables", each with a "title" and "rows". Errors name the table, the row
// and the field.
func Parse(data []byte) (*Suite, error) {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("line %d: expected JSON, found %w", 1+bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n")), err)
		}
		return nil, fmt.Errorf("expected JSON, found %w", err)
	}
	top, err := object(data, "models", "tables")
	if err != nil {
		return nil, err
	}
	s := &Suite{Models: map[string]Model{}}
	if err := s.models(top["models"]); err != nil {
		return nil, err
	}
	var tables []json.RawMessage
	if err := field(top, "tables", "a list of tables", &tables); err != nil {
		return nil, err
	}
	for i, raw := range tables {
		t, err := s.table(raw)
		if err != nil {
			return nil, fmt.Errorf("table %d%s: %w", i+1, quoted(t.Title), err)
		}
		s.Tables = append(s.Tables, t)
	}
	switch n := len(s.Cases()); {
	case n == 0:
		return nil, errors.New("tables: expected at least one row, found none")
	case n > maxCases:
		return nil, fmt.Errorf("tables: expected at most %d tests, found %d", maxCases, n)
	}
	return s, nil
}

func quoted(title string) string {
	if title == "" {
		return ""
	}
	return fmt.Sprintf(" %q", clip(title))
}

// clip makes what was found short and one line.
func clip(s string) string {
	const most = 60
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// object reads an object with no other fields than the known ones, each once.
func object(raw json.RawMessage, known ...string) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("expected an object, found %s", clip(string(bytes.TrimSpace(raw))))
	}
	out := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		if known != nil && !slices.Contains(known, name) {
			return nil, fmt.Errorf("field: expected one of %s, found %q", strings.Join(known, ", "), clip(name))
		}
		if out[name] != nil {
			return nil, fmt.Errorf("%s: expected once, found a second time", clip(name))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

// field reads a field into to, which is left alone if there is none.
func field(in map[string]json.RawMessage, name, want string, to any) error {
	raw, ok := in[name]
	if !ok {
		return nil
	}
	if string(raw) == "null" || json.Unmarshal(raw, to) != nil {
		return fmt.Errorf("%s: expected %s, found %s", name, want, clip(string(raw)))
	}
	return nil
}

// text checks what stands in a cell of a table or in a heading.
func text(name, s string) error {
	bad := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("|<>`", r) }
	if s == "" || s != strings.TrimSpace(s) || utf8.RuneCountInString(s) > maxText || !utf8.ValidString(s) || strings.ContainsFunc(s, bad) {
		return fmt.Errorf("%s: expected a line of 1 to %d letters without | < > ` and outer spaces, found %q", name, maxText, clip(s))
	}
	return nil
}

// name is what models and peers are called: it needs no quotes on a command
// line.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (s *Suite) models(raw json.RawMessage) error {
	if raw == nil {
		return errors.New("models: expected an object, found none")
	}
	all, err := object(raw)
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !name.MatchString(key) {
			return fmt.Errorf("models: expected names of letters, digits and . _ -, found %q", clip(key))
		}
		m, err := model(all[key])
		if err != nil {
			return fmt.Errorf("models: %s: %w", key, err)
		}
		s.Models[key] = m
	}
	return nil
}

func model(raw json.RawMessage) (m Model, err error) {
	in, err := object(raw, "title", "from", "synthetic")
	if err != nil {
		return m, err
	}
	err = cmp.Or(field(in, "title", "a text", &m.Title), field(in, "from", "a text", &m.From), field(in, "synthetic", "a text", &m.Synthetic))
	if err != nil {
		return m, err
	}
	if (m.From == "") == (m.Synthetic == "") {
		return m, fmt.Errorf("expected one of from and synthetic, found %q and %q", clip(m.From), clip(m.Synthetic))
	}
	return m, text("title", m.Title)
}

// settings are fields of a row that a table can give for all of its rows.
type settings struct {
	threads, repeat int
	kv, tier        string
	peers           []string
}

var settingNames = []string{"threads", "kv", "tier", "repeat", "peers"}

func (g *settings) read(in map[string]json.RawMessage) error {
	if _, ok := in["peers"]; ok {
		g.peers = nil // not to write into the table's list
	}
	return cmp.Or(
		field(in, "threads", "a whole number", &g.threads), field(in, "kv", "a text", &g.kv), field(in, "tier", "a text", &g.tier),
		field(in, "repeat", "a whole number", &g.repeat), field(in, "peers", "a list of names", &g.peers))
}

func (s *Suite) table(raw json.RawMessage) (t Table, err error) {
	in, err := object(raw, append([]string{"title", "rows"}, settingNames...)...)
	if err != nil {
		return t, err
	}
	if err := field(in, "title", "a text", &t.Title); err != nil {
		return t, err
	}
	if err := text("title", t.Title); err != nil {
		return t, err
	}
	common := settings{kv: "f16", repeat: 5}
	var rows []json.RawMessage
	if err := cmp.Or(common.read(in), field(in, "rows", "a list of rows", &rows)); err != nil {
		return t, err
	}
	seen := map[string]bool{}
	for i, raw := range rows {
		cases, err := s.row(raw, common)
		if err != nil {
			return t, fmt.Errorf("row %d: %w", i+1, err)
		}
		for _, c := range cases {
			if seen[c.Name()] {
				return t, fmt.Errorf("row %d: tests: expected each once, found %s a second time", i+1, c.Name())
			}
			seen[c.Name()] = true
		}
		t.Cases = append(t.Cases, cases...)
	}
	return t, nil
}

// row reads a row of the file, a case for each of its tests.
func (s *Suite) row(raw json.RawMessage, g settings) ([]*Case, error) {
	in, err := object(raw, append([]string{"model", "tests", "flags"}, settingNames...)...)
	if err != nil {
		return nil, err
	}
	c := Case{}
	var tests []string
	err = cmp.Or(field(in, "model", "a text", &c.Model), field(in, "tests", "a list of tests", &tests),
		field(in, "flags", "an object of texts", &c.Flags), g.read(in))
	if err != nil {
		return nil, err
	}
	m, ok := s.Models[c.Model]
	if !ok {
		return nil, fmt.Errorf("model: expected one of %s, found %q", strings.Join(slices.Sorted(maps.Keys(s.Models)), ", "), clip(c.Model))
	}
	c.Title = m.Title
	if err := c.set(g); err != nil {
		return nil, err
	}
	if len(tests) == 0 {
		return nil, errors.New("tests: expected at least one, found none")
	}
	var cases []*Case
	for _, name := range tests {
		one := c
		if one.Work, err = bench.ParseWork(name); err != nil {
			return nil, fmt.Errorf("tests: %w", err)
		}
		cases = append(cases, &one)
	}
	return cases, nil
}

// set checks and takes over the settings.
func (c *Case) set(g settings) error {
	if g.threads < 0 || g.threads > pool.MaxWorkers {
		return fmt.Errorf("threads: expected 0 to %d, found %d", pool.MaxWorkers, g.threads)
	}
	if g.repeat < 1 || g.repeat > maxRepeat {
		return fmt.Errorf("repeat: expected 1 to %d, found %d", maxRepeat, g.repeat)
	}
	kv, err := tensor.ParseDType(g.kv)
	if err != nil || !slices.Contains([]tensor.DType{tensor.F16, tensor.F32, tensor.BF16, tensor.Q8_0}, kv) {
		return fmt.Errorf("kv: expected f16, f32, bf16 or q8_0, found %q", clip(g.kv))
	}
	if g.tier != "" {
		tier, err := cpu.Parse(g.tier)
		if err != nil {
			return fmt.Errorf("tier: %w", err)
		}
		g.tier = tier.String()
	}
	for i, p := range g.peers {
		if !name.MatchString(p) || slices.Contains(g.peers[:i], p) {
			return fmt.Errorf("peers: expected names of letters, digits and . _ -, each once, found %q", clip(p))
		}
	}
	for name := range c.Flags {
		if !slices.Contains(g.peers, name) {
			return fmt.Errorf("flags: expected names of the row's peers, %q, found %q", g.peers, clip(name))
		}
	}
	c.Threads, c.Repeat, c.KV, c.Tier, c.Peers = g.threads, g.repeat, kv, g.tier, g.peers
	return nil
}
