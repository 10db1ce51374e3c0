package schema

import "ridge/text/grammar"

// itemAt returns the schemas that item i of an array must meet.
func itemAt(a *alternative, i int) []*schema {
	var conj []*schema
	for _, s := range a.arrays {
		if i < len(s.prefix) {
			conj = append(conj, s.prefix[i])
		} else if s.items != nil {
			conj = append(conj, s.items)
		}
	}
	return conj
}

func hasNever(conj []*schema) bool {
	for _, s := range conj {
		if s.never {
			return true
		}
	}
	return false
}

// arrayBounds returns the number of items that have places of their own and the
// bounds of the number of all items; hi < 0: no bound.
func arrayBounds(a *alternative) (places, lo, hi int) {
	for _, s := range a.arrays {
		places = max(places, len(s.prefix))
	}
	lo, hi = a.minItems, a.maxItems
	for i := range places + 1 {
		if hasNever(itemAt(a, i)) {
			return places, lo, least(hi, i)
		}
	}
	return places, lo, hi
}

// addArray adds the arrays of an alternative: first the items that have places
// of their own, then the rest.
func (c *schemaCompiler) addArray(r *grammar.Rule, from int32, a *alternative, to int32, at *schema) {
	places, lo, hi := arrayBounds(a)
	if hi >= 0 && hi < lo {
		return
	}
	if unique := a.unique && !c.differ(a, places, hi); unique || len(a.contains) > 0 {
		c.addTracked(r, from, a, to, at, unique)
		return
	}
	rest := itemAt(a, places)
	open, closing, done := r.State(), r.State(), r.State()
	r.Bytes(from, '[', '[', open)
	if lo == 0 {
		r.Bytes(open, ']', ']', to)
	}
	if hi == 0 {
		return
	}
	c.j.gap(r, done, beforeClose, closing)
	r.Bytes(closing, ']', ']', to)
	next := r.State() // where the next item begins
	c.j.gap(r, open, afterOpen, next)
	for i := 0; i < places && (hi < 0 || i < hi); i++ {
		after := r.State()
		c.addValue(r, next, itemAt(a, i), after)
		if i+1 >= lo {
			r.Skip(after, done)
		}
		if next = r.State(); i+1 < places || hi < 0 || places < hi {
			c.addComma(r, after, next)
		}
	}
	if hi >= 0 && hi <= places {
		return
	}
	after := r.State()
	left, most := max(0, lo-places), hi
	if hi >= 0 {
		most = hi - places
	}
	// One item of the rest stands at next already; more follow after commas.
	if left <= 1 && most < 0 {
		c.addValue(r, next, rest, after)
		c.addComma(r, after, next)
		r.Skip(after, done)
		return
	}
	item := c.conjRule(rest)
	r.Call(next, item, after)
	if most == 1 {
		r.Skip(after, done)
		return
	}
	more := c.b.Rule("further items")
	begin := more.State()
	c.addComma(more, more.Start, begin)
	more.Call(begin, item, more.End)
	if most > 0 {
		most--
	}
	r.Call(after, c.b.Loop("items", more, max(0, left-1), most), done)
}

func (c *schemaCompiler) addComma(r *grammar.Rule, from, to int32) {
	comma := r.State()
	r.Bytes(from, ',', ',', comma)
	c.j.gap(r, comma, afterComma, to)
}
