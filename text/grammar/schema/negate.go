package schema

import (
	"math/big"

	"ridge/text/grammar"
)

// negation returns the schema of the values that do not meet s: for each keyword
// of s, those that fail it, which again is what a schema can say. A value that a
// keyword is not about never fails it, so each of these schemas names its type.
//
// Negations are made once, before they are complete, so that schemas that refer
// to themselves have negations that do.
func (c *schemaCompiler) negation(s *schema) (*schema, error) {
	if s.negated != nil {
		return s.negated, nil
	}
	n := c.empty(s.at)
	n.target = s.target
	s.negated = n
	if s.never {
		return n, nil
	}
	w := &negator{c: c, s: s}
	for _, part := range [...]func() error{w.inPlace, w.values, w.strings, w.numbers, w.arrays, w.objects} {
		if err := part(); err != nil {
			return nil, err
		}
		if !c.b.Spend(16) {
			return nil, c.b.Err()
		}
	}
	n.any, n.never = w.ways, len(w.ways) == 0
	return n, nil
}

// negator collects the ways not to meet a schema.
type negator struct {
	c    *schemaCompiler
	s    *schema
	ways []*schema
}

// way adds a schema for values of type t (0: any).
func (w *negator) way(t types) *schema {
	n := w.c.empty(w.s.at)
	if t != 0 {
		n.barred, n.about = allTypes&^t, t
		if t == typeNumber {
			n.about = typeInteger // as its keywords have it
		}
	}
	w.ways = append(w.ways, n)
	return n
}

func (w *negator) refuse(keyword string, kind grammar.Kind, why string) error {
	if keyword == "enum" && !w.s.has("enum") && w.s.has("const") {
		keyword = "const"
	}
	return w.c.fail(w.s.at, keyword, kind, "%s", why)
}

// room reports, as an error, that there are more ways than could be merged.
func (w *negator) room() error {
	if len(w.ways) > maxAlternatives {
		return w.refuse("", grammar.TooLarge, "too large: more than 512 ways not to meet the schema")
	}
	if !w.c.b.Spend(16) {
		return w.c.b.Err()
	}
	return nil
}

const notNegated = "not supported inside not, if, or what stands for them: "

// of returns the negation of a part of the schema and whether it has one: some
// parts are always met.
func (w *negator) of(t *schema) (*schema, bool, error) {
	if err := w.room(); err != nil {
		return nil, false, err
	}
	n, err := w.c.negation(t)
	return n, err == nil && !n.never, err
}

// inPlace negates the keywords that apply other schemas to the value itself.
func (w *negator) inPlace() error {
	if t := w.s.types; t != 0 {
		w.way(0).barred = t
	}
	parts := w.s.all
	if w.s.ref != nil {
		parts = append(parts[:len(parts):len(parts)], w.s.ref)
	}
	for _, t := range parts {
		n, some, err := w.of(t)
		if err != nil {
			return err
		}
		if some {
			// A reference, so that a schema that refers to itself in place is found.
			w.way(0).ref = n
		}
	}
	for _, t := range w.s.no {
		w.way(0).all = []*schema{t}
	}
	if len(w.s.any) > 0 {
		if err := w.none(w.s.any); err != nil {
			return err
		}
	}
	if len(w.s.one) > 0 {
		if err := w.none(w.s.one); err != nil {
			return err
		}
		for i, t := range w.s.one { // or two of them
			for _, u := range w.s.one[:i] {
				if err := w.room(); err != nil {
					return err
				}
				w.way(0).all = []*schema{t, u}
			}
		}
	}
	return nil
}

// none adds the values that meet none of a list of schemas.
func (w *negator) none(list []*schema) error {
	n := w.way(0)
	for _, t := range list {
		m, err := w.c.negation(t)
		if err != nil {
			return err
		}
		n.all = append(n.all, m)
	}
	return nil
}

// values negates enum and const.
func (w *negator) values() error {
	if !w.s.valued {
		return nil
	}
	n := w.way(0)
	for _, v := range w.s.values {
		switch v.kind {
		case jsonNull:
			n.barred |= typeNull
		case jsonArray, jsonObject:
			m, err := w.c.otherThan(v, w.s.at)
			if err != nil {
				return err
			}
			n.all = append(n.all, m)
		case jsonNumber:
			if d := decimalOf(v.rat); len(d.whole) > maxDigits || len(d.frac) > maxDigits {
				return w.refuse("enum", grammar.Unsupported, "number with more than 60 digits")
			}
			n.excluded = append(n.excluded, v)
		default:
			n.excluded = append(n.excluded, v)
		}
	}
	return nil
}

// otherThan returns the schema of the values that are not equal to an array or
// object.
func (c *schemaCompiler) otherThan(v *jsonValue, at string) (*schema, error) {
	if !c.b.Spend(8 * (1 + len(v.items) + len(v.keys))) {
		return nil, c.b.Err()
	}
	same := c.empty(at)
	exactly := func(x *jsonValue) *schema {
		t := c.empty(at)
		t.valued, t.values = true, []*jsonValue{x}
		return t
	}
	if v.kind == jsonArray {
		same.types, same.minItems, same.maxItems = typeArray, len(v.items), len(v.items)
		for _, x := range v.items {
			same.prefix = append(same.prefix, exactly(x))
		}
		return c.negation(same)
	}
	same.types, same.required = typeObject, v.keys
	same.names, same.properties = v.keys, map[string]*schema{}
	for _, k := range v.keys {
		same.properties[k] = exactly(v.members[k])
	}
	n, err := c.negation(same)
	if err != nil {
		return nil, err
	}
	more := c.empty(at) // all of them, and another
	more.barred, more.about = allTypes&^typeObject, typeObject
	more.required, more.minProps = v.keys, len(v.keys)+1
	n.any = append(n.any, more)
	return n, nil
}

func (w *negator) strings() error {
	for key, t := range map[string]*schema{"unevaluatedProperties": w.s.unevaluatedMembers, "unevaluatedItems": w.s.unevaluatedItems} {
		if t != nil {
			return w.refuse(key, grammar.Unsupported, notNegated+"it depends on what else is met")
		}
	}
	if w.s.inexact != "" {
		return w.refuse(w.s.inexact, grammar.Unsupported, notNegated+"not every text of a format is known")
	}
	for _, d := range w.s.patterns {
		w.way(typeString).patterns = []*grammar.RuneDFA{d.Complement()}
	}
	return w.bounds("Length", typeString, w.s.minLen, w.s.maxLen, func(n *schema, lo, hi int) { n.minLen, n.maxLen = lo, hi })
}

// bounds negates bounds of a number of things.
func (w *negator) bounds(what string, t types, lo, hi int, set func(n *schema, lo, hi int)) error {
	if lo > 0 {
		set(w.way(t), 0, lo-1)
	}
	if hi >= grammar.MaxRepeat {
		return w.refuse("max"+what, grammar.TooLarge, "too large: more than 1048575 where it is negated")
	}
	if hi >= 0 {
		set(w.way(t), hi+1, -1)
	}
	return nil
}

func (w *negator) numbers() error {
	if w.s.lo != nil {
		n := w.way(typeNumber)
		n.hi, n.openHi = w.s.lo, !w.s.openLo
	}
	if w.s.hi != nil {
		n := w.way(typeNumber)
		n.lo, n.openLo = w.s.hi, !w.s.openHi
	}
	for _, m := range w.s.multiples {
		w.way(typeNumber).notMultiples = []*big.Rat{m}
	}
	// What only negations say.
	for _, m := range w.s.notMultiples {
		w.way(typeNumber).multiples = []*big.Rat{m}
	}
	if len(w.s.excluded) > 0 {
		n := w.way(0)
		n.valued, n.values = true, w.s.excluded
	}
	if w.s.barred != 0 {
		w.way(0).barred = allTypes &^ w.s.barred
	}
	return nil
}

func (w *negator) arrays() error {
	s := w.s
	if s.unique {
		return w.refuse("uniqueItems", grammar.Unsupported, notNegated+"that two items are equal cannot be asked for")
	}
	anything := w.c.empty(s.at)
	for i, t := range s.prefix {
		n, some, err := w.of(t)
		if err != nil {
			return err
		}
		if !w.c.b.Spend(i + 1) {
			return w.c.b.Err()
		}
		if !some {
			continue
		}
		way := w.way(typeArray)
		for range i {
			way.prefix = append(way.prefix, anything)
		}
		way.prefix, way.minItems = append(way.prefix, n), i+1
	}
	if s.items != nil {
		n, some, err := w.of(s.items)
		if err != nil {
			return err
		}
		if some && len(s.prefix) < grammar.MaxRepeat {
			if s.items.never {
				w.way(typeArray).minItems = len(s.prefix) + 1
			} else {
				w.way(typeArray).contains = []*contains{{of: n, from: len(s.prefix), min: 1, max: -1}}
			}
		}
	}
	for _, k := range s.contains {
		if k.min > 0 {
			w.way(typeArray).contains = []*contains{{of: k.of, from: k.from, max: k.min - 1}}
		}
		if k.max >= 0 {
			w.way(typeArray).contains = []*contains{{of: k.of, from: k.from, min: k.max + 1, max: -1}}
		}
	}
	return w.bounds("Items", typeArray, s.minItems, s.maxItems, func(n *schema, lo, hi int) { n.minItems, n.maxItems = lo, hi })
}

func (w *negator) objects() error {
	s := w.s
	for _, name := range s.names {
		n, some, err := w.of(s.properties[name])
		if err != nil {
			return err
		}
		if some {
			w.member(name, n).required = []string{name}
		}
	}
	never := w.c.empty(s.at)
	never.never = true
	for _, name := range s.required {
		if err := w.room(); err != nil {
			return err
		}
		w.member(name, never)
	}
	for _, t := range s.patternSchemas {
		if n, err := w.c.negation(t); err != nil || !n.never {
			return w.refuse("patternProperties", grammar.Unsupported, notNegated+"a member of a name that is not listed may come again, and the last one counts")
		}
	}
	if s.additional != nil {
		if n, err := w.c.negation(s.additional); err != nil || !n.never {
			return w.refuse("additionalProperties", grammar.Unsupported, notNegated+"a member of a name that is not listed may come again, and the last one counts")
		}
	}
	if s.propertyNames != nil {
		if n, err := w.c.negation(s.propertyNames); err != nil || !n.never {
			return w.refuse("propertyNames", grammar.Unsupported, notNegated+"that some member has another name cannot be asked for")
		}
	}
	return w.bounds("Properties", typeObject, s.minProps, s.maxProps, func(n *schema, lo, hi int) { n.minProps, n.maxProps = lo, hi })
}

// member adds the objects whose member of a name meets n, if they have it.
func (w *negator) member(name string, n *schema) *schema {
	way := w.way(typeObject)
	way.names, way.properties, way.quiet = []string{name}, map[string]*schema{name: n}, true
	return way
}
