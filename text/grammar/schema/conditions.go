package schema

// Keywords that apply schemas on a condition. They are read as what they stand
// for: anyOf of the cases, with the condition or its negation in each.

// not reads a schema that must not be met.
func (k *keywordReader) not() error {
	t, err := k.c.parse(k.x, pointer(k.s.at, k.key))
	k.s.no = append(k.s.no, t)
	return err
}

// condition reads if with then and else. These have no effect without it, nor it
// without them.
func (k *keywordReader) condition() error {
	then, other := k.whole.members["then"], k.whole.members["else"]
	if then == nil && other == nil && !k.c.annotated {
		return nil
	}
	test, err := k.c.parse(k.x, pointer(k.s.at, k.key))
	if err != nil {
		return err
	}
	yes, no := k.c.empty(k.s.at), k.c.empty(k.s.at)
	yes.all = []*schema{test}
	if then != nil || other != nil {
		no.no = []*schema{test}
	}
	for _, part := range [...]struct {
		key string
		x   *jsonValue
		to  *schema
	}{{"then", then, yes}, {"else", other, no}} {
		if part.x == nil {
			continue
		}
		t, err := k.c.parse(part.x, pointer(k.s.at, part.key))
		if err != nil {
			return err
		}
		part.to.all = append(part.to.all, t)
	}
	k.cases(yes, no)
	return nil
}

// cases adds that one of several schemas is met, of which no two can be, or need
// to be told apart.
func (k *keywordReader) cases(list ...*schema) {
	any := k.c.empty(k.s.at)
	any.any, any.disjoint = list, true
	k.s.all = append(k.s.all, any)
}

// dependents reads members that ask more of the object that has them: names of
// other members (dependentRequired), a schema (dependentSchemas), or, as before
// 2019-09, one or the other (dependencies). There are two cases for each: the
// member is absent, or it is present and what it asks for holds.
func (k *keywordReader) dependents(names, schemas bool) error {
	k.s.about |= typeObject
	if err := k.expect(jsonObject); err != nil {
		return err
	}
	for _, name := range k.x.keys {
		never, absent, present := k.c.empty(k.s.at), k.c.empty(k.s.at), k.c.empty(k.s.at)
		never.never = true
		absent.about, absent.quiet = typeObject, true
		absent.names, absent.properties = []string{name}, map[string]*schema{name: never}
		present.about, present.barred = typeObject, allTypes&^typeObject
		present.required = []string{name}
		if x := k.x.members[name]; names && (x.kind == jsonArray || !schemas) {
			list := &keywordReader{k.c, present, k.key, k.whole, x}
			if err := list.required(); err != nil {
				return err
			}
		} else {
			t, err := k.c.parse(x, pointer(k.s.at, k.key, name))
			if err != nil {
				return err
			}
			present.all = []*schema{t}
		}
		k.cases(absent, present)
	}
	return nil
}

// without reads a keyword that has an effect only beside another, which reads it.
func (k *keywordReader) without() error { return nil }
