package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"ridge/internal/diag"
)

// LarkOptions are what a grammar in Lark may need of others.
type LarkOptions struct {
	// JSON adds the rule of a JSON schema, for %json.
	JSON func(b *Builder, schema []byte) (*Rule, error)
}

// larkStart matches what a grammar in Lark may begin with: the head of a rule with
// a colon, or a directive.
var larkStart = regexp.MustCompile(`^(%[a-z]+|[!?]*[A-Za-z_][A-Za-z0-9_-]*[ \t]*(\[|\{|\.-?[0-9]|:($|[^:]|:[^=])))`)

// IsLark reports whether a grammar is written in Lark rather than in GBNF: whether
// its first rule has a colon where GBNF has "::=", or it is the JSON in which
// llguidance has several grammars.
func IsLark(source string) bool {
	if larkList(source) != nil {
		return true
	}
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "//") {
			continue
		}
		return larkStart.MatchString(line)
	}
	return false
}

// larkGrammar is a grammar of several.
type larkGrammar struct {
	Name string          `json:"name"`
	Lark *string         `json:"lark_grammar"`
	JSON json.RawMessage `json:"json_schema"`

	rule *Rule // once somebody asked for it
}

// larkList returns the grammars of {"grammars": [...]}, nil if source is none.
func larkList(source string) []*larkGrammar {
	if !strings.HasPrefix(strings.TrimSpace(source), "{") || len(source) > MaxSource {
		return nil
	}
	var o struct{ Grammars []*larkGrammar }
	d := json.NewDecoder(strings.NewReader(source))
	d.DisallowUnknownFields()
	if d.Decode(&o) != nil || len(o.Grammars) == 0 {
		return nil
	}
	for _, g := range o.Grammars {
		if g == nil || (g.Lark == nil) == (g.JSON == nil) {
			return nil
		}
	}
	return o.Grammars
}

// Lark adds the rule of a grammar in the variant of Lark's notation that llguidance
// reads, whose rule "start" is the whole text. See docs/grammars.md for the syntax, and
// schema.Lark for grammars with %json.
func (b *Builder) Lark(source string, o LarkOptions) (*Rule, error) {
	s := &larkSet{b: b, o: o, named: map[string]*larkGrammar{}}
	list := larkList(source)
	if list == nil {
		return s.add(source)
	}
	for _, g := range list {
		if g.Name != "" {
			if s.named[g.Name] != nil {
				return nil, &Error{Kind: Invalid, Source: "lark", Keyword: g.Name, Why: "grammar found twice"}
			}
			s.named[g.Name] = g
		}
	}
	return s.rule(list[0])
}

// larkSet are the grammars that may call each other.
type larkSet struct {
	b     *Builder
	o     LarkOptions
	named map[string]*larkGrammar
}

// rule returns the rule of a grammar.
func (s *larkSet) rule(g *larkGrammar) (*Rule, error) {
	if g.rule != nil {
		return g.rule, nil
	}
	g.rule = s.b.Rule("grammar")
	var r *Rule
	var err error
	if g.Lark != nil {
		r, err = s.add(*g.Lark)
	} else {
		r, err = s.json(g.JSON, "")
	}
	if err != nil {
		return nil, err
	}
	g.rule.Call(g.rule.Start, r, g.rule.End)
	return g.rule, s.b.err
}

// json adds the rule of a schema.
func (s *larkSet) json(schema []byte, where string) (*Rule, error) {
	if s.o.JSON == nil {
		return nil, &Error{Kind: Unsupported, Source: "lark", Where: where, Keyword: "%json", Why: "JSON schemas are not known here"}
	}
	return s.o.JSON(s.b, schema)
}

// add adds the rule of one grammar.
func (s *larkSet) add(source string) (*Rule, error) {
	if len(source) > MaxSource {
		return nil, tooLarge("lark", "", "longer than %d bytes", MaxSource)
	}
	if !utf8.ValidString(source) {
		return nil, &Error{Kind: Invalid, Source: "lark", Why: "not valid UTF-8"}
	}
	p := &larkParser{set: s, b: s.b, src: source, rules: map[string]*ebnfRule{}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	root := p.rules["start"]
	if root == nil || !root.defined {
		return nil, &Error{Kind: Invalid, Source: "lark", Keyword: "start", Why: "rule not defined"}
	}
	if err := p.resolve(); err != nil {
		return nil, err
	}
	root, err := p.gaps(root)
	if err != nil {
		return nil, err
	}
	for _, r := range p.order {
		r.findSmall()
	}
	return s.b.ebnf(root)
}

type larkParser struct {
	set   *larkSet
	b     *Builder
	src   string
	at    int
	depth int
	rules map[string]*ebnfRule
	order []*ebnfRule

	terminal bool // what is parsed is a terminal's
	lazy     []larkLazy
	ignore   []*ebnfExpr
	once     bool // what is ignored comes at most once between lexemes
}

func (p *larkParser) where(at int) string {
	line := 1 + strings.Count(p.src[:at], "\n")
	return fmt.Sprintf("line %d, column %d", line, at-strings.LastIndex(p.src[:at], "\n"))
}

func (p *larkParser) fail(kind Kind, at int, format string, args ...any) error {
	return &Error{Kind: kind, Source: "lark", Where: p.where(at), Why: fmt.Sprintf(format, args...)}
}

// parse reads the statements.
func (p *larkParser) parse() error {
	for p.space(true); p.at < len(p.src); p.space(true) {
		var err error
		at := p.at
		if p.peek() == '%' {
			err = p.directive()
		} else {
			err = p.definition()
		}
		if err != nil {
			return err
		}
		if c := p.peek(); p.at < len(p.src) && c != '\n' && c != '\r' {
			return p.fail(Invalid, p.at, "expected an operand, | or the end of the line, found %s", p.found())
		}
		if p.at == at {
			return p.fail(Invalid, at, "expected a rule, found %s", p.found())
		}
	}
	return nil
}

// definition parses NAME [OPTIONS]: ALTERNATIVES.
func (p *larkParser) definition() error {
	for p.peek() == '!' || p.peek() == '?' { // of trees, which are not made here
		p.at++
	}
	at := p.at
	name := p.name()
	if name == "" {
		return p.fail(Invalid, at, "expected the name of a rule, found %s", p.found())
	}
	r, err := p.define(name, at)
	if err != nil {
		return err
	}
	p.space(false)
	switch {
	case p.peek() == '.':
		return p.fail(Unsupported, p.at, "priorities of rules are not supported")
	case p.peek() == '{', strings.HasPrefix(p.src[p.at:], "::"):
		return p.fail(Unsupported, p.at, "rules with parameters are not supported")
	}
	lazy := larkLazy{rule: r}
	if p.peek() == '[' {
		if err := p.options(&lazy); err != nil {
			return err
		}
	}
	if !p.accept(":") {
		return p.fail(Invalid, p.at, "expected : after %s, found %s", diag.Quote(name), p.found())
	}
	p.terminal = r.terminal || lazy.set
	r.body, err = p.alternatives(false)
	r.defined = true
	if lazy.set {
		p.lazy = append(p.lazy, lazy)
	}
	return err
}

// define returns the rule of a name that is defined here.
func (p *larkParser) define(name string, at int) (*ebnfRule, error) {
	if len(p.order) >= maxRules {
		return nil, tooLarge("lark", "", "more than %d rules", maxRules)
	}
	r := p.rule(name, at)
	if r.defined {
		return nil, p.fail(Invalid, at, "rule %s defined twice", diag.Quote(name))
	}
	return r, nil
}

// rule returns the rule of a name.
func (p *larkParser) rule(name string, at int) *ebnfRule {
	r := p.rules[name]
	if r == nil {
		bare := strings.TrimPrefix(name, "_")
		r = &ebnfRule{name: name, where: at, terminal: bare != "" && bare[0] >= 'A' && bare[0] <= 'Z'}
		p.rules[name] = r
		p.order = append(p.order, r)
	}
	return r
}

// directive parses %ignore, %import and the like.
func (p *larkParser) directive() error {
	at := p.at
	p.at++
	switch word := p.name(); word {
	case "ignore":
		p.terminal = true
		e, err := p.alternatives(false)
		p.ignore = append(p.ignore, e)
		return err
	case "import":
		return p.imports()
	case "llguidance":
		raw, err := p.jsonValue()
		if err != nil {
			return err
		}
		var o struct {
			Skip string `json:"skip_repetition"`
		}
		if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Unmarshal(raw, &o) != nil {
			return p.fail(Invalid, at, "expected an object of options after %%llguidance")
		}
		p.once = p.once || o.Skip == "once"
		return nil
	default:
		return p.fail(Unsupported, at, "expected a rule, %%ignore, %%import or %%llguidance, found %s", diag.Quote("%"+word))
	}
}

// jsonValue consumes the JSON value that comes next.
func (p *larkParser) jsonValue() ([]byte, error) {
	d := json.NewDecoder(strings.NewReader(p.src[p.at:]))
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return nil, p.fail(Invalid, p.at, "expected JSON, found %s", p.found())
	}
	p.at += int(d.InputOffset())
	return raw, nil
}
