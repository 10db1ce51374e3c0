package schema

import (
	"math/big"

	"ridge/text/grammar"
)

// contains asks for a number of items that meet a schema.
type contains struct {
	of       *schema
	from     int // items before it do not count
	min, max int // max < 0: no bound
}

const (
	maxTracked  = 4096 // states of an array whose items are counted or compared
	maxContains = 4    // contains of one array
	maxDistinct = 64   // values of the items of an array with uniqueItems
	maxPairwise = 8    // items that are told apart by their schemas
)

// tracked is how far an array has been read whose items are counted or compared.
type tracked struct {
	place  int    // items, counted up to what matters
	seen   uint64 // values that have come, with uniqueItems
	counts [maxContains]int
}

// arrayWalk finds the states of such an array.
type arrayWalk struct {
	c              *schemaCompiler
	r              *grammar.Rule
	a              *alternative
	at             *schema
	places, lo, hi int
	top            int       // places beyond it are alike, if there is no bound
	misses         []*schema // what items meet that a contains with an upper bound does not count

	unique bool
	values []*distinct
}

// distinct is a value that an item can have, with its spellings.
type distinct struct {
	value *jsonValue
	rule  *grammar.Rule
	where []bool // the places that it may have; the last one is for the rest
	hits  [maxContains]bool
}

// addTracked adds the arrays of an alternative with contains or uniqueItems.
func (c *schemaCompiler) addTracked(r *grammar.Rule, from int32, a *alternative, to int32, at *schema, unique bool) {
	if unique && !c.few(a) && c.addDistinct(r, from, a, to, at) {
		return
	}
	w := &arrayWalk{c: c, r: r, a: a, at: at, unique: unique}
	w.places, w.lo, w.hi = arrayBounds(a)
	w.top = max(w.places, w.lo)
	if !w.prepare() {
		return
	}
	open, begin, done, closing := r.State(), r.State(), r.State(), r.State()
	r.Bytes(from, '[', '[', open)
	if w.complete(tracked{}) {
		r.Bytes(open, ']', ']', to)
	}
	c.j.gap(r, open, afterOpen, begin)
	c.j.gap(r, done, beforeClose, closing)
	r.Bytes(closing, ']', ']', to)

	after := map[tracked]int32{} // where an item has ended
	var list []tracked
	visit := func(s tracked, begin int32) {
		w.items(s, func(item *grammar.Rule, next tracked) {
			end, ok := after[next]
			if !ok {
				end = r.State()
				after[next] = end
				list = append(list, next)
			}
			r.Call(begin, item, end)
		})
	}
	visit(tracked{}, begin)
	for i := 0; i < len(list) && !c.stopped(); i++ {
		if len(list) > maxTracked {
			w.fail(grammar.TooLarge, "too large: an array with more than %d states; a small maxItems or fewer values help", maxTracked)
			return
		}
		if w.complete(list[i]) {
			r.Skip(after[list[i]], done)
		}
		begin := r.State()
		c.addComma(r, after[list[i]], begin)
		visit(list[i], begin)
	}
}

// fail refuses the array by the keyword that is to blame.
func (w *arrayWalk) fail(kind grammar.Kind, format string, args ...any) {
	keys := []string{"contains", "minContains", "maxContains", "items", "enum", "const"}
	if w.unique {
		keys = []string{"uniqueItems"}
	}
	s, key := w.a.owner(w.at, keys...)
	w.c.setErr(w.c.fail(s.at, key, kind, format, args...))
}

// prepare finds what the items are told apart by; it reports whether that is
// possible.
func (w *arrayWalk) prepare() bool {
	c, n := w.c, len(w.a.contains)
	if n > maxContains {
		w.fail(grammar.TooLarge, "too large: more than %d contains for one array", maxContains)
		return false
	}
	w.misses = make([]*schema, n)
	for j, k := range w.a.contains {
		w.top = max(w.top, k.from)
		if w.unique && k.from > 0 {
			w.fail(grammar.Unsupported, "not supported together with the negation of items")
			return false
		}
		if k.max >= 0 && !w.unique {
			var err error
			if w.misses[j], err = c.negation(k.of); err != nil {
				c.setErr(err)
				return false
			}
		}
	}
	if w.unique {
		for i := range w.places + 1 {
			if !w.distinctAt(i) {
				w.fail(grammar.Unsupported, "only for items that are scalars, for items with at most %d values, for at most one item, or for items of which no two can be equal", maxDistinct)
				return false
			}
		}
	}
	return !c.stopped()
}

// distinctAt adds the values that item i can have; ok is false if they cannot be
// listed.
func (w *arrayWalk) distinctAt(i int) (ok bool) {
	c := w.c
	conj := itemAt(w.a, i)
	if hasNever(conj) || w.hi >= 0 && i >= w.hi {
		return true
	}
	list, ok := c.finite(conj)
	if !ok {
		return false
	}
	for _, v := range list {
		var d *distinct
		same := false // the same spelling
		for _, x := range w.values {
			c.b.Spend(1)
			if x.value.equal(v) {
				d = x
			}
		}
		if d == nil {
			if len(w.values) == maxDistinct {
				return false
			}
			d = &distinct{value: v, rule: c.b.Rule("item"), where: make([]bool, w.places+1)}
			for j, k := range w.a.contains {
				d.hits[j] = c.valid(k.of, v, 0)
			}
			w.values = append(w.values, d)
		} else {
			same = d.value.text == v.text
		}
		d.where[i] = true
		if !same {
			c.j.literal(d.rule, d.rule.Start, v, d.rule.End)
		}
	}
	return true
}

// finite lists the values of a conjunction if they are few.
func (c *schemaCompiler) finite(conj []*schema) ([]*jsonValue, bool) {
	conj = simplify(conj)
	var list []*jsonValue
	add := func(v *jsonValue) {
		if c.meets(v, conj) {
			list = append(list, v)
		}
	}
	for _, a := range c.alternatives(conj) {
		if a.valued {
			list = append(list, a.values...)
			continue
		}
		t := c.written(a)
		if t&(typeFraction|typeString|typeArray|typeObject) != 0 {
			return nil, false
		}
		if t&typeNull != 0 {
			add(&jsonValue{kind: jsonNull})
		}
		if t&typeBool != 0 {
			add(&jsonValue{kind: jsonBool, truth: true})
			add(&jsonValue{kind: jsonBool})
		}
		if t&typeInteger == 0 {
			continue
		}
		if a.lo == nil || a.hi == nil || new(big.Rat).Sub(a.hi, a.lo).Cmp(big.NewRat(maxDistinct, 1)) > 0 {
			return nil, false
		}
		n := new(big.Int).Div(a.lo.Num(), a.lo.Denom()) // rounded down
		for x := new(big.Rat).SetInt(n); x.Cmp(a.hi) <= 0; x = new(big.Rat).Add(x, big.NewRat(1, 1)) {
			add(&jsonValue{kind: jsonNumber, rat: x, text: x.Num().String()})
		}
	}
	return list, !c.stopped()
}

// differ reports whether no two items of the arrays of an alternative can be
// equal, whatever they are.
func (c *schemaCompiler) differ(a *alternative, places, hi int) bool {
	if hi < 0 || hi > maxPairwise || hi > 1 && len(a.contains) > 0 {
		return false // an item that is counted may be of another type
	}
	for i := range hi {
		for j := range i {
			if !c.apartConj(itemAt(a, min(i, places)), itemAt(a, min(j, places)), 0) {
				return false
			}
		}
	}
	return true
}

// few reports whether the items of an array are few enough to be listed, with
// the sets of them that can have come.
func (c *schemaCompiler) few(a *alternative) bool {
	list, ok := c.finite(itemAt(a, 0))
	_, _, hi := arrayBounds(a)
	return ok && (len(list) <= 12 || hi >= 0 && hi <= 2 && len(list) <= maxDistinct)
}

func (w *arrayWalk) complete(s tracked) bool {
	for j, k := range w.a.contains {
		if s.counts[j] < k.min {
			return false
		}
	}
	return s.place >= w.lo
}

// items calls do for each kind of item that may come next.
func (w *arrayWalk) items(s tracked, do func(item *grammar.Rule, next tracked)) {
	if w.hi >= 0 && s.place >= w.hi || w.c.stopped() {
		return
	}
	at := min(s.place, w.places)
	next := s
	if next.place++; w.hi < 0 {
		next.place = min(next.place, w.top)
	}
	if w.unique {
		w.valuesAt(at, s, next, do)
		return
	}
	w.kinds(0, s.place, itemAt(w.a, at), next, do)
}

// valuesAt goes through the values that have not come yet.
func (w *arrayWalk) valuesAt(at int, s, next tracked, do func(*grammar.Rule, tracked)) {
	for i, v := range w.values {
		if s.seen>>i&1 != 0 || !v.where[at] {
			continue
		}
		n, ok := next, true
		n.seen |= 1 << i
		for j, k := range w.a.contains {
			if v.hits[j] {
				n.counts[j], ok = k.count(s.counts[j], ok)
			}
		}
		if ok {
			do(v.rule, n)
		}
	}
}

// count returns n and one more, as far as it matters; ok is false if that is too many.
func (k *contains) count(n int, ok bool) (int, bool) {
	if k.max < 0 {
		return min(n+1, k.min), ok
	}
	return n + 1, ok && n < k.max
}

// kinds goes through what the next item may be for the contains from j on: one
// that is counted, or one that is not. Without an upper bound it does not harm
// to count less than there are, so the latter may be anything.
func (w *arrayWalk) kinds(j, place int, conj []*schema, next tracked, do func(*grammar.Rule, tracked)) {
	if hasNever(conj) || !w.c.b.Spend(16) {
		return
	}
	if j == len(w.a.contains) {
		do(w.c.conjRule(conj), next)
		return
	}
	k, n := w.a.contains[j], next.counts[j]
	if place < k.from || k.max < 0 && n >= k.min {
		w.kinds(j+1, place, conj, next, do)
		return
	}
	rest := conj[:len(conj):len(conj)]
	if k.max >= 0 {
		rest = append(rest, w.misses[j])
	}
	w.kinds(j+1, place, rest, next, do)
	if more, ok := k.count(n, true); ok {
		next.counts[j] = more
		w.kinds(j+1, place, append(conj[:len(conj):len(conj)], k.of), next, do)
	}
}
