package constraint

// Both returns what applies two maskers.
func Both(a, b Masker) Masker { return both{a, b} }

type both struct{ a, b Masker }

func (m both) Mask(logits []float32) {
	m.a.Mask(logits)
	m.b.Mask(logits)
}

func (m both) Accept(token int32) error {
	if err := m.a.Accept(token); err != nil {
		return err
	}
	return m.b.Accept(token)
}

func (m both) Done() bool {
	for _, x := range []Masker{m.a, m.b} {
		if d, ok := x.(interface{ Done() bool }); ok && d.Done() {
			return true
		}
	}
	return false
}

func (m both) Err() error {
	for _, x := range []Masker{m.a, m.b} {
		if e, ok := x.(interface{ Err() error }); ok && e.Err() != nil {
			return e.Err()
		}
	}
	return nil
}

// Jump appends what one of the maskers forces, while the other one is free. It
// appends nothing where both could forbid tokens.
func (m both) Jump(dst []int32) []int32 {
	for _, x := range [...]both{m, {m.b, m.a}} {
		j, jumps := x.a.(jumper)
		if f, ok := x.b.(interface{ Free() bool }); jumps && ok && f.Free() {
			return j.Jump(dst)
		}
	}
	return dst
}

// jumper is a masker that may force tokens.
type jumper interface{ Jump(dst []int32) []int32 }
