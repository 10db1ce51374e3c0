package model

import (
	"errors"
	"fmt"

	"ridge/internal/mmap"
	"ridge/nn"
)

// ErrChanged is the reason why a model cannot compute any more: its files were
// written to or cut short, and rows of its embedding are read from them. A file
// that is replaced by a rename does no harm.
var ErrChanged = mmap.ErrChanged

// errContext is returned for a step that would make a sequence longer than the
// model's context.
var errContext = errors.New("model: context length exceeded")

// Step is one forward pass, Run the rows of one sequence in it.
type (
	Step = nn.Step
	Run  = nn.Run
)

// Forward computes the runs of s, appends what the layers keep of them to their
// sequences, and leaves a row of output for each row that wants one, in order:
// see Logits and Hidden. On an error no sequence is longer than before; one with a
// state, which may be half computed, is empty.
func (m *Model) Forward(s *Step) error {
	if err := m.grow(s); err != nil {
		return err
	}
	s.Place()
	if s.Rows() == 0 {
		return nil
	}
	m.setWidth(s.Rows())
	m.pool.Enter()
	defer m.pool.Leave()
	m.exec.Begin(s)
	err := m.lookUp(s, &m.rows)
	if err == nil {
		err = m.guard(func() {
			m.net.run(m.exec, s, &m.rows)
			if n := len(s.Wanted()); n > 0 && !s.NoLogits {
				m.Project(0, n)
			}
		})
	}
	if err != nil {
		m.shrink(s.Runs)
	}
	return err
}

// grow checks the step and makes room for its rows.
func (m *Model) grow(s *Step) error {
	if err := m.net.checkSkip(s, m.kv.Stateful()); err != nil {
		return fmt.Errorf("model: skip: %w", err)
	}
	if err := m.checkTaps(s.Taps); err != nil {
		return err
	}
	for i, r := range s.Runs {
		if n := r.Rows(); r.Seq.Len()+n > m.context {
			return fmt.Errorf("%w: %d tokens held and %d more, the context has %d", errContext, r.Seq.Len(), n, m.context)
		} else if m.cfg.Encoder.Both && r.Seq.Len() > 0 {
			return fmt.Errorf("model: run %d: %s looks in both directions: expected a whole text, found %d tokens before it", i, m.cfg.Arch, r.Seq.Len())
		} else if r.Outputs < 0 || r.Outputs > n {
			return fmt.Errorf("model: run %d: outputs: expected 0 to %d, found %d", i, n, r.Outputs)
		}
		if err := m.checkTree(&r); err != nil {
			return fmt.Errorf("model: run %d: tree: %w", i, err)
		}
		for _, t := range r.Tokens {
			if t < 0 || int(t) >= m.cfg.Vocab {
				return fmt.Errorf("model: run %d: token: expected 0 to %d, found %d", i, m.cfg.Vocab-1, t)
			}
		}
	}
	for i, r := range s.Runs {
		if err := m.kv.Grow(r.Seq, r.Rows()); err != nil {
			m.shrink(s.Runs[:i])
			return err
		}
	}
	return nil
}

// checkTree checks the tree of a run.
func (m *Model) checkTree(r *Run) error {
	if r.Tree == nil {
		return nil
	}
	if n := r.Seq.Len() + r.Rows(); len(r.Tree) >= n {
		return fmt.Errorf("expected a token before %d nodes, found %d tokens", len(r.Tree), n)
	}
	chain := true
	for i, parent := range r.Tree {
		if parent < -1 || int(parent) >= i {
			return fmt.Errorf("node %d: parent: expected -1 to %d, found %d", i, i-1, parent)
		}
		chain = chain && int(parent) == i-1
	}
	switch {
	case m.cfg.Encoder.Both:
		return fmt.Errorf("expected a model that looks back, found %s", m.cfg.Arch)
	case !chain && m.kv.Stateful():
		return fmt.Errorf("expected a chain, as layers with states go from a token to the next, found branches")
	}
	return nil
}

// shrink takes back what grow has done for runs.
func (m *Model) shrink(runs []Run) {
	for _, r := range runs {
		m.kv.Truncate(r.Seq, r.Seq.Len()-r.Rows())
	}
}

// lookUp is Net.embed, whose rows come from the files. Once these have been
// changed nothing can be computed any more.
func (m *Model) lookUp(s *Step, rows *netRows) error {
	var err error
	if cut := mmap.Guard(func() { err = m.net.embed(s, rows) }); cut != nil {
		err = cut
	}
	if changed := m.check(); changed != nil {
		err = changed
	}
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	return nil
}

// Project computes the logits of n output rows of the last step, from row first
// on: Logits(i) is that of row first+i afterwards. Many rows of a large
// vocabulary can so be had in pieces.
func (m *Model) Project(first, n int) {
	if m.guard(func() { m.net.project(m.exec, &m.rows, first, n) }) != nil {
		clear(m.rows.logits.F32) // the next Forward says why
	}
}

// Outputs returns the number of output rows of the last step.
func (m *Model) Outputs() int { return m.rows.out.N }

// Logits returns the logits of output row i of the last step, or of row i of
// those that Project computed since: one per entry of the vocabulary. The slice
// is valid until the next Forward or Project and may be changed.
func (m *Model) Logits(i int) []float32 { return nn.Row(&m.rows.logits, i) }

// Hidden returns the final normalized state of output row i of the last step,
// valid until the next one.
func (m *Model) Hidden(i int) []float32 { return nn.Row(&m.rows.out, i) }
