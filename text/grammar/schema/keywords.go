package schema

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"

	"ridge/internal/diag"
	"ridge/text/grammar"
)

// keywordReader is one keyword of a schema while it is read.
type keywordReader struct {
	c     *schemaCompiler
	s     *schema
	key   string
	whole *jsonValue // the schema
	x     *jsonValue // the value of the keyword
}

// keywords reads those that restrict values. It is filled by init, because
// schemas contain schemas.
var keywords map[string]func(*keywordReader) error

func init() {
	keywords = map[string]func(*keywordReader) error{
		"type":                  (*keywordReader).types,
		"enum":                  (*keywordReader).enum,
		"const":                 func(k *keywordReader) error { return k.values([]*jsonValue{k.x}) },
		"minLength":             func(k *keywordReader) error { return k.least(typeString, &k.s.minLen) },
		"maxLength":             func(k *keywordReader) error { return k.most(typeString, &k.s.maxLen) },
		"pattern":               (*keywordReader).pattern,
		"format":                (*keywordReader).format,
		"minimum":               func(k *keywordReader) error { return k.bound(true, false) },
		"maximum":               func(k *keywordReader) error { return k.bound(false, false) },
		"exclusiveMinimum":      func(k *keywordReader) error { return k.bound(true, true) },
		"exclusiveMaximum":      func(k *keywordReader) error { return k.bound(false, true) },
		"multipleOf":            (*keywordReader).multipleOf,
		"prefixItems":           (*keywordReader).prefixItems,
		"items":                 (*keywordReader).items,
		"additionalItems":       (*keywordReader).additionalItems,
		"minItems":              func(k *keywordReader) error { return k.least(typeArray, &k.s.minItems) },
		"maxItems":              func(k *keywordReader) error { return k.most(typeArray, &k.s.maxItems) },
		"uniqueItems":           (*keywordReader).uniqueItems,
		"properties":            (*keywordReader).properties,
		"patternProperties":     (*keywordReader).patternProperties,
		"additionalProperties":  func(k *keywordReader) error { return k.schema(typeObject, &k.s.additional) },
		"propertyNames":         func(k *keywordReader) error { return k.schema(typeObject, &k.s.propertyNames) },
		"required":              (*keywordReader).required,
		"minProperties":         func(k *keywordReader) error { return k.least(typeObject, &k.s.minProps) },
		"maxProperties":         func(k *keywordReader) error { return k.most(typeObject, &k.s.maxProps) },
		"$ref":                  (*keywordReader).ref,
		"allOf":                 func(k *keywordReader) error { return k.schemas(0, &k.s.all) },
		"anyOf":                 func(k *keywordReader) error { return k.schemas(0, &k.s.any) },
		"oneOf":                 func(k *keywordReader) error { return k.schemas(0, &k.s.one) },
		"not":                   (*keywordReader).not,
		"if":                    (*keywordReader).condition,
		"then":                  (*keywordReader).without,
		"else":                  (*keywordReader).without,
		"dependentRequired":     func(k *keywordReader) error { return k.dependents(true, false) },
		"dependentSchemas":      func(k *keywordReader) error { return k.dependents(false, true) },
		"unevaluatedProperties": func(k *keywordReader) error { return k.schema(typeObject, &k.s.unevaluatedMembers) },
		"unevaluatedItems":      func(k *keywordReader) error { return k.schema(typeArray, &k.s.unevaluatedItems) },
		"dependencies":          func(k *keywordReader) error { return k.dependents(true, true) },
		"contains":              (*keywordReader).contains,
		"minContains":           (*keywordReader).without,
		"maxContains":           (*keywordReader).without,
	}
}

func (k *keywordReader) fail(kind grammar.Kind, format string, args ...any) error {
	return k.c.fail(k.s.at, k.key, kind, format, args...)
}

func (k *keywordReader) expect(kind jsonKind) error {
	if k.x.kind != kind {
		return k.fail(grammar.Invalid, "expected %s, found %s", kind, k.x.kind)
	}
	return nil
}

func (k *keywordReader) types() error {
	names := []*jsonValue{k.x}
	if k.x.kind == jsonArray {
		names = k.x.items
	}
	for _, n := range names {
		t := typeNames[n.text]
		if n.kind != jsonString || t == 0 {
			return k.fail(grammar.Invalid, "expected the name of a type or an array of them, found %s", diag.Quote(n.text))
		}
		k.s.types |= t
	}
	if k.s.types == 0 {
		return k.fail(grammar.Invalid, "expected at least one type")
	}
	return nil
}

func (k *keywordReader) enum() error {
	if err := k.expect(jsonArray); err != nil {
		return err
	}
	return k.values(k.x.items)
}

// values restricts the schema to the given ones.
func (k *keywordReader) values(list []*jsonValue) error {
	if !k.s.valued {
		k.s.valued, k.s.values = true, list
		return nil
	}
	k.s.values = common(k.s.values, list)
	return nil
}

// count reads a number of characters, items or members.
func (k *keywordReader) count(about types) (int, error) {
	k.s.about |= about
	if k.x.kind != jsonNumber || !k.x.rat.IsInt() || k.x.rat.Sign() < 0 {
		return 0, k.fail(grammar.Invalid, "expected a whole number that is not negative")
	}
	n := k.x.rat.Num()
	if !n.IsInt64() || n.Int64() > grammar.MaxRepeat {
		return grammar.MaxRepeat + 1, nil
	}
	return int(n.Int64()), nil
}

func (k *keywordReader) least(about types, n *int) error {
	x, err := k.count(about)
	if err == nil && x > grammar.MaxRepeat {
		return k.fail(grammar.TooLarge, "too large: more than %d", grammar.MaxRepeat)
	}
	*n = max(*n, x)
	return err
}

// most reads an upper bound; one beyond the limit is lowered to it, which only
// leaves out texts that no model writes.
func (k *keywordReader) most(about types, n *int) error {
	x, err := k.count(about)
	*n = least(*n, min(x, grammar.MaxRepeat))
	return err
}

func (k *keywordReader) pattern() error {
	k.s.about |= typeString
	if err := k.expect(jsonString); err != nil {
		return err
	}
	expr := k.x.text
	if m := lengthAhead.FindStringSubmatch(expr); m != nil {
		lo, err := strconv.Atoi(m[1])
		most, e := strconv.Atoi(m[2])
		if err == nil && e == nil && most <= grammar.MaxRepeat {
			k.s.minLen, k.s.maxLen, k.s.inexact = max(k.s.minLen, lo), least(k.s.maxLen, most), k.key
			d, err := k.regex(k.s.at, "^.*$")
			if err != nil {
				return err
			}
			k.s.patterns, expr = append(k.s.patterns, d), "^"+m[3]
		}
	}
	d, err := k.regex(k.s.at, expr)
	k.s.patterns = append(k.s.patterns, d)
	return err
}

// lengthAhead matches expressions that begin with a bound of the whole length,
// in which counting is left to what counts lengths. A point at the end that does
// not count is counted: a part of the texts is left out.
var lengthAhead = regexp.MustCompile(`^\^\(\?=\.\{([0-9]{1,7}),([0-9]{1,7})\}(?:\\\.\?)?\$\)(.*)$`)

// regex compiles a pattern, which matches anywhere in the text.
func (k *keywordReader) regex(at, expr string) (*grammar.RuneDFA, error) {
	re, err := fromECMA(expr)
	if err != nil {
		return nil, k.c.fail(at, k.key, grammar.Unsupported, "%v", err)
	}
	if k.c.prefix != "" {
		at = k.c.prefix + " " + at
	}
	d := k.c.b.Pattern(at, k.key, re, true)
	return d, k.c.b.Err()
}

func (k *keywordReader) format() error {
	if err := k.expect(jsonString); err != nil {
		return err
	}
	name := k.x.text
	if r, ok := numberFormats[name]; ok {
		if r != nil { // those of OpenAPI; its floats are numbers like others
			k.s.about |= typeInteger
			k.s.inexact = k.key
			k.raise(r[0], false)
			k.lower(r[1], false)
		}
		return nil
	}
	if plainFormats[name] {
		return nil
	}
	k.s.format = name
	if d := formatDFA(name); d != nil {
		k.s.about |= typeString
		k.s.inexact = k.key
		k.s.formatted = d
	}
	return nil
}

// joinFormat ends the reading of a schema: what its format says of strings joins
// its pattern. Where both cannot be met the pattern holds, because the format is
// an annotation then as the specification has it.
func (c *schemaCompiler) joinFormat(s *schema) error {
	switch {
	case s.format == "":
	case s.formatted == nil:
		if len(s.patterns) == 0 {
			c.note(s.at, "format", "unknown format "+diag.Quote(s.format)+", which says nothing")
		}
	case len(s.patterns) == 0:
		s.patterns = []*grammar.RuneDFA{s.formatted}
	default:
		defer c.blame(s, "format")()
		both := c.joined(append(slices.Clone(s.patterns), s.formatted))
		if c.b.Err() == nil && both.Empty() {
			s.inexact = ""
			c.note(s.at, "format", "no text has the format "+diag.Quote(s.format)+" and matches the pattern, which holds")
		} else {
			s.patterns = []*grammar.RuneDFA{both}
		}
	}
	return c.b.Err()
}

const maxDigits = 60 // of a bound of numbers

func (k *keywordReader) bound(lower, open bool) error {
	k.s.about |= typeInteger
	if open && k.x.kind == jsonBool { // as before draft 6: whether the bound beside it is left out
		beside := k.whole.members[map[bool]string{true: "minimum", false: "maximum"}[lower]]
		if beside != nil && beside.kind == jsonNumber {
			if !k.x.truth {
				return nil
			}
			k.x = beside
		}
	}
	if err := k.expect(jsonNumber); err != nil {
		return err
	}
	limit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(290), nil))
	if x := new(big.Rat).Abs(k.x.rat); x.Cmp(limit) >= 0 {
		if (k.x.rat.Sign() < 0) == lower {
			return nil // no number that is ever written reaches it
		}
	}
	if d := decimalOf(k.x.rat); len(d.whole) > maxDigits || len(d.frac) > maxDigits {
		return k.fail(grammar.Unsupported, "number with more than %d digits", maxDigits)
	}
	if lower {
		k.raise(k.x.rat, open)
	} else {
		k.lower(k.x.rat, open)
	}
	return nil
}

func (k *keywordReader) raise(x *big.Rat, open bool) { raise(&k.s.lo, &k.s.openLo, x, open) }
func (k *keywordReader) lower(x *big.Rat, open bool) { lower(&k.s.hi, &k.s.openHi, x, open) }

// raise makes a lower bound at least x; lower makes an upper one at most x.
func raise(lo **big.Rat, openLo *bool, x *big.Rat, open bool) {
	if x == nil {
		return
	}
	if *lo == nil || x.Cmp(*lo) > 0 {
		*lo, *openLo = x, open
	} else if x.Cmp(*lo) == 0 {
		*openLo = *openLo || open
	}
}

func lower(hi **big.Rat, openHi *bool, x *big.Rat, open bool) {
	if x == nil {
		return
	}
	if *hi == nil || x.Cmp(*hi) < 0 {
		*hi, *openHi = x, open
	} else if x.Cmp(*hi) == 0 {
		*openHi = *openHi || open
	}
}

func (k *keywordReader) multipleOf() error {
	k.s.about |= typeInteger
	if err := k.expect(jsonNumber); err != nil {
		return err
	}
	if k.x.rat.Sign() <= 0 {
		return k.fail(grammar.Invalid, "expected a positive number")
	}
	if _, _, ok := multipleParts(k.x.rat); !ok {
		return k.fail(grammar.Unsupported, "%s not supported: only numbers with at most %d significant steps", k.x.text, maxModulus)
	}
	k.s.multiples = append(k.s.multiples, k.x.rat)
	return nil
}

// schema reads a keyword that is a schema.
func (k *keywordReader) schema(about types, to **schema) error {
	k.s.about |= about
	s, err := k.c.parse(k.x, pointer(k.s.at, k.key))
	*to = s
	return err
}

// schemas reads a keyword that is a list of schemas.
func (k *keywordReader) schemas(about types, to *[]*schema) error {
	k.s.about |= about
	if err := k.expect(jsonArray); err != nil {
		return err
	}
	if len(k.x.items) == 0 {
		return k.fail(grammar.Invalid, "expected at least one schema")
	}
	for i, x := range k.x.items {
		s, err := k.c.parse(x, pointer(k.s.at, k.key, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		*to = append(*to, s)
	}
	return nil
}

// prefixItems is a list of schemas. An empty one, which JSON Schema does not want and
// validators take, says nothing.
func (k *keywordReader) prefixItems() error {
	if k.x.kind == jsonArray && len(k.x.items) == 0 {
		return nil
	}
	return k.schemas(typeArray, &k.s.prefix)
}

// items is a schema, or, before 2020-12, a list of them.
func (k *keywordReader) items() error {
	if k.x.kind == jsonArray {
		if k.whole.members["prefixItems"] != nil {
			return k.fail(grammar.Invalid, "expected a schema beside prefixItems, found array")
		}
		if len(k.x.items) == 0 {
			k.s.about |= typeArray
			return nil
		}
		return k.prefixItems()
	}
	return k.schema(typeArray, &k.s.items)
}

func (k *keywordReader) additionalItems() error {
	if list := k.whole.members["items"]; list == nil || list.kind != jsonArray {
		return nil // without effect
	}
	return k.schema(typeArray, &k.s.items)
}

// contains reads it with minContains and maxContains, which have no effect
// without it.
func (k *keywordReader) contains() error {
	k.s.about |= typeArray
	t, err := k.c.parse(k.x, pointer(k.s.at, k.key))
	if err != nil {
		return err
	}
	n := &contains{of: t, min: 1, max: -1}
	if k.whole.members["minContains"] != nil {
		n.min = 0
	}
	read := func(key string, what func(*keywordReader) error) {
		if x := k.whole.members[key]; x != nil && err == nil {
			err = what(&keywordReader{k.c, k.s, key, k.whole, x})
		}
	}
	read("minContains", func(k *keywordReader) error { return k.least(typeArray, &n.min) })
	read("maxContains", func(k *keywordReader) error { return k.most(typeArray, &n.max) })
	if n.min > 0 || n.max >= 0 || k.c.annotated {
		k.s.contains = append(k.s.contains, n)
	}
	return err
}

func (k *keywordReader) uniqueItems() error {
	k.s.about |= typeArray
	if err := k.expect(jsonBool); err != nil {
		return err
	}
	k.s.unique = k.x.truth
	return nil
}

func (k *keywordReader) properties() error {
	k.s.about |= typeObject
	if err := k.expect(jsonObject); err != nil {
		return err
	}
	k.s.properties = map[string]*schema{}
	for _, name := range k.x.keys {
		s, err := k.c.parse(k.x.members[name], pointer(k.s.at, k.key, name))
		if err != nil {
			return err
		}
		k.s.names = append(k.s.names, name)
		k.s.properties[name] = s
	}
	return nil
}

func (k *keywordReader) patternProperties() error {
	k.s.about |= typeObject
	if err := k.expect(jsonObject); err != nil {
		return err
	}
	for _, expr := range k.x.keys {
		at := pointer(k.s.at, k.key, expr)
		if why, ok := k.c.o.left.find(k.c.where(at), k.key); ok {
			k.c.note(at, k.key, why)
			continue
		}
		d, err := k.regex(at, expr)
		if err != nil {
			return err
		}
		s, err := k.c.parse(k.x.members[expr], at)
		if err != nil {
			return err
		}
		k.s.patternNames = append(k.s.patternNames, d)
		k.s.patternSchemas = append(k.s.patternSchemas, s)
	}
	return nil
}

func (k *keywordReader) required() error {
	k.s.about |= typeObject
	if err := k.expect(jsonArray); err != nil {
		return err
	}
	for _, x := range k.x.items {
		if x.kind != jsonString {
			return k.fail(grammar.Invalid, "expected names, found %s", x.kind)
		}
		k.s.required = append(k.s.required, x.text)
	}
	return nil
}

func (k *keywordReader) ref() error {
	if err := k.expect(jsonString); err != nil {
		return err
	}
	s, err := k.c.resolve(k.s, k.x.text)
	k.s.ref = s
	return err
}
