package schema

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ridge/text/grammar"
)

// Options say how a JSON grammar is read and written.
type Options struct {
	// Whitespace is what may stand between the parts of the text.
	Whitespace Whitespace
	// Open reads a schema to the letter: an object may have members that the
	// schema does not mention unless it forbids them, and keywords of one type
	// say nothing about values of other types. Otherwise an object has only the
	// members mentioned (unless additionalProperties is present, or no member is
	// mentioned at all), and a schema without a type whose keywords all are of
	// one type means that type: what authors of schemas for models expect. Both
	// yield only valid texts.
	Open bool
	// AnyOrder allows the members of an object in any order; otherwise they
	// come in the order of the schema, those it does not name last.
	AnyOrder bool
	// LooseOneOf reads oneOf as anyOf where its branches cannot be told apart;
	// the text may then match more than one of them. Otherwise such a schema is
	// refused.
	LooseOneOf bool
	// Loose leaves out the keywords that cannot be enforced; Unenforced of the
	// grammar names them. Otherwise a schema with such a keyword is refused.
	Loose bool
	// MaxDepth bounds the nesting of the text, in calls of rules: an object or
	// array inside another takes one or two. 0 stands for 512; more than 10000 counts as 10000.
	MaxDepth int
	// Context ends the compilation, whose error it then is. It may be nil.
	Context context.Context

	left   *leftOut // what is left out, with Loose
	object bool     // a schema that says nothing of types is one of objects
}

// Compile compiles a JSON schema (draft 2020-12, see docs/grammars.md for
// what is supported) for the vocabulary v (nil: no masks).
func Compile(v *grammar.Vocabulary, schema []byte, o Options) (*grammar.Grammar, error) {
	return loosely(o, func(o Options) (*grammar.Grammar, error) {
		b := o.builder("schema")
		j := &jsonText{b: b, space: o.Whitespace}
		root, err := schemaRule(j, schema, o, "")
		if err != nil {
			return nil, err
		}
		return b.Compile(root, v, o.MaxDepth)
	})
}

// schemaRule adds the rule of a whole schema; prefix comes before the pointers
// in its errors.
func schemaRule(j *jsonText, text []byte, o Options, prefix string) (*grammar.Rule, error) {
	c := newSchemaCompiler(j, o, prefix)
	root, err := c.root(text)
	if err != nil {
		return nil, err
	}
	if o.object && root.types == 0 && root.plain() && root.ref == nil {
		root.types = typeObject
	}
	r := c.conjRule([]*schema{root})
	if c.err != nil {
		return nil, c.err
	}
	if j.b.Err() != nil {
		return nil, j.b.Err()
	}
	return r, nil
}

func newSchemaCompiler(j *jsonText, o Options, prefix string) *schemaCompiler {
	return &schemaCompiler{
		b: j.b, j: j, o: o, prefix: prefix,
		parsed: map[*jsonValue]*schema{}, rules: map[string]*grammar.Rule{}, leafRules: map[string]*grammar.Rule{},
	}
}

// root returns a whole schema, the one that it is compiled from.
func (c *schemaCompiler) root(text []byte) (*schema, error) {
	doc, err := parseJSON(text)
	if err != nil {
		return nil, c.fail("", "", grammar.Invalid, "%s", err)
	}
	c.doc, c.annotated = doc, bytes.Contains(text, []byte("unevaluated"))
	return c.parse(doc, "#")
}

type schemaCompiler struct {
	b      *grammar.Builder
	j      *jsonText
	o      Options
	prefix string
	doc    *jsonValue
	// Some schema asks which members and items others are about, so that these
	// are kept where they do not say anything else.
	annotated bool
	proofs    int // that are being made, see apart.go
	err       error

	parsed    map[*jsonValue]*schema
	schemas   int                      // made so far
	verdicts  map[validKey]bool        // what is known of values and schemas that are referred to
	rules     map[string]*grammar.Rule // conjunction → its rule
	leafRules map[string]*grammar.Rule // string or number → its rule
}

func (c *schemaCompiler) fail(at, keyword string, k grammar.Kind, format string, args ...any) error {
	return &grammar.Error{Kind: k, Source: c.b.Source, Where: c.where(at), Keyword: keyword, Why: fmt.Sprintf(format, args...)}
}

// where is a place as errors have it.
func (c *schemaCompiler) where(at string) string { return strings.TrimSpace(c.prefix + " " + at) }

// note says that a keyword is not enforced.
func (c *schemaCompiler) note(at, keyword, why string) {
	c.b.Note(grammar.Unenforced{Where: c.where(at), Keyword: keyword, Why: why})
}

// types is a set of JSON types; number is both kinds of numbers.
type types uint8

const (
	typeNull types = 1 << iota
	typeBool
	typeInteger
	typeFraction // numbers that are no integers
	typeString
	typeArray
	typeObject

	typeNumber = typeInteger | typeFraction
	allTypes   = 1<<7 - 1
)

var typeNames = map[string]types{
	"null": typeNull, "boolean": typeBool, "integer": typeInteger, "number": typeNumber,
	"string": typeString, "array": typeArray, "object": typeObject,
}

// schema is one parsed schema.
type schema struct {
	id     int
	at     string   // JSON pointer
	keys   []string // its keywords
	never  bool     // false
	target bool     // something refers to it

	types  types // 0: not said
	about  types // the types that its keywords are about
	values []*jsonValue
	valued bool            // it has enum or const
	known  map[string]bool // the keys of values, once asked for

	patterns       []*grammar.RuneDFA // of strings
	format         string
	formatted      *grammar.RuneDFA // of the format, if it is known
	minLen, maxLen int              // maxLen < 0: no bound

	lo, hi         *big.Rat // of numbers
	openLo, openHi bool     // exclusive
	multiples      []*big.Rat
	prefix         []*schema
	items          *schema
	minItems       int
	maxItems       int // < 0: no bound
	names          []string
	properties     map[string]*schema
	patternNames   []*grammar.RuneDFA
	patternSchemas []*schema
	additional     *schema
	required       []string
	minProps       int
	maxProps       int // < 0: no bound
	propertyNames  *schema
	ref            *schema
	all, any, one  []*schema
	disjoint       bool      // of any no two can be met
	no             []*schema // those that must not be met
	// What members and items must meet that nothing else in the schema is about.
	unevaluatedMembers, unevaluatedItems *schema
	contains                             []*contains
	unique                               bool   // no two items are equal
	inexact                              string // a keyword that is known in part only, so that it cannot be negated

	// What only negation says (negate.go).
	barred       types        // types that are left out
	excluded     []*jsonValue // texts, numbers and booleans that are left out
	notMultiples []*big.Rat
	quiet        bool // that it names members does not mean that others are not wanted

	negated   *schema   // its negation
	sets      []*schema // the sets of any of which all can be met
	exclusive []*schema // the branches of one, of which no two match
	merged    []*alternative
	isMerged  bool // merged is known, without duties
}

// empty returns a new schema that says nothing; at is its place in errors.
func (c *schemaCompiler) empty(at string) *schema {
	s := &schema{id: c.schemas, at: at, maxLen: -1, maxItems: -1, maxProps: -1}
	c.schemas++
	return s
}

// parse returns the schema that v is, parsed once.
func (c *schemaCompiler) parse(v *jsonValue, at string) (*schema, error) {
	if s := c.parsed[v]; s != nil {
		return s, nil
	}
	s := c.empty(at)
	c.parsed[v] = s
	switch v.kind {
	case jsonBool:
		s.never = !v.truth
		return s, nil
	case jsonObject:
	default:
		return nil, c.fail(at, "", grammar.Invalid, "a schema is an object or a boolean, found %s", v.kind)
	}
	for _, key := range v.keys {
		if err := c.keyword(s, v, key, v.members[key]); err != nil {
			return nil, err
		}
	}
	return s, c.joinFormat(s)
}

func (s *schema) has(keyword string) bool { return slices.Contains(s.keys, keyword) }

// pointer appends a name to a JSON pointer.
func pointer(at string, names ...string) string {
	for _, n := range names {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(n)
	}
	return at
}

// resolve returns the schema that a reference names.
func (c *schemaCompiler) resolve(s *schema, ref string) (*schema, error) {
	bad := func(k grammar.Kind, why string) (*schema, error) {
		return nil, c.fail(s.at, "$ref", k, "%q: %s", ref, why)
	}
	base, fragment, _ := strings.Cut(ref, "#")
	if base != "" {
		id := c.doc.members["$id"]
		if id == nil || id.kind != jsonString || strings.TrimSuffix(id.text, "#") != base {
			return bad(grammar.Unsupported, "only references into the same schema are followed")
		}
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return bad(grammar.Invalid, "not a JSON pointer")
	}
	v, at := c.doc, "#"
	if fragment != "" {
		if fragment[0] != '/' {
			return bad(grammar.Unsupported, "only JSON pointers are followed, not anchors")
		}
		for _, name := range strings.Split(fragment[1:], "/") {
			name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
			switch v.kind {
			case jsonObject:
				v = v.members[name]
			case jsonArray:
				i, err := strconv.Atoi(name)
				if err != nil || i < 0 || i >= len(v.items) {
					v = nil
				} else {
					v = v.items[i]
				}
			default:
				v = nil
			}
			if v == nil {
				return bad(grammar.Invalid, "nothing is there")
			}
			at = pointer(at, name)
		}
	}
	t, err := c.parse(v, at)
	if err == nil {
		t.target = true
	}
	return t, err
}

// annotations are keywords that say nothing about which values are valid.
var annotations = []string{
	"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly",
	"$comment", "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary",
	"contentEncoding", "contentMediaType", "contentSchema", "discriminator", "markdownDescription",
	"enumNames", "externalDocs", "xml", "propertyOrdering", "errorMessage", "enumDescriptions", "optional",
}

// keyword reads one member of a schema.
func (c *schemaCompiler) keyword(s *schema, v *jsonValue, key string, x *jsonValue) error {
	s.keys = append(s.keys, key)
	if why, ok := c.o.left.find(c.where(s.at), key); ok {
		c.note(s.at, key, why)
		return nil
	}
	if read := keywords[key]; read != nil {
		return read(&keywordReader{c, s, key, v, x})
	}
	switch {
	case key == "$id" && v != c.doc:
		return c.fail(s.at, key, grammar.Unsupported, "not supported inside a schema")
	case key == "$schema":
		if x.kind != jsonString || !strings.Contains(x.text, "json-schema.org/") {
			return c.fail(s.at, key, grammar.Unsupported, "only the dialects of json-schema.org are supported")
		}
		return nil
	case key == "$defs" || key == "definitions":
		if x.kind != jsonObject {
			return c.fail(s.at, key, grammar.Invalid, "expected an object, found %s", x.kind)
		}
		return nil // read where something refers to them
	case slices.Contains(annotations, key) || strings.HasPrefix(key, "x-"):
		return nil
	}
	if key == "$dynamicRef" || key == "$recursiveRef" {
		return c.fail(s.at, key, grammar.Unsupported, "keyword not supported")
	}
	c.note(s.at, key, "unknown keyword, which says nothing")
	return nil
}
