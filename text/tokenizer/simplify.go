package tokenizer

// simplify replaces the general way from text to pieces by a faster one that
// gives the same ids, where there is one.
func (t *Tokenizer) simplify() {
	m, ok := t.model.(*bpe)
	if !ok || m.prefix != "" || m.suffix != "" {
		return
	}
	if t.dropByteStage(m) {
		return
	}
	t.useRuns(m)
}

// dropByteStage lets a byte-level BPE work on bytes, so that the text need not
// be written in its byte-level form.
func (t *Tokenizer) dropByteStage(m *bpe) bool {
	at := -1
	for i, st := range t.stages {
		switch {
		case st.kind == stageBytes && at < 0:
			at = i
		case at >= 0 && st.onBytes == nil:
			return false
		}
	}
	if at < 0 || m.fuseUnk && m.unk >= 0 {
		return false
	}
	if m.byteFallback {
		for _, text := range byteText {
			if m.v.find(text) < 0 {
				return false
			}
		}
	}
	stages := append([]stage(nil), t.stages[:at]...)
	for _, st := range t.stages[at+1:] {
		stages = append(stages, stage{kind: stageScan, match: st.onBytes, byteSteps: true})
	}
	t.stages = stages
	m.initBytes()
	return true
}

// useRuns takes the way of SentencePiece-like vocabularies where nothing cuts
// the text before merging.
func (t *Tokenizer) useRuns(m *bpe) {
	if m.wholeFirst || len(t.stages) > 1 || len(t.stages) == 1 && (t.stages[0].kind != stageMeta || t.stages[0].cut) {
		return
	}
	// Text without tokens must not matter beyond a cut.
	safe := m.unk >= 0 && !m.fuseUnk
	if m.byteFallback {
		_, n := t.vocab.byteTokens()
		safe = safe || n == 256
	}
	if !safe {
		return
	}
	w := &marked{}
	if len(t.stages) == 1 {
		st := t.stages[0]
		w.mark, w.prefix, w.prefixSpaces = st.mark, st.prefix, st.prefixSpaces
		t.stages = nil
	} else if n := len(t.norm); n > 0 && t.addedNorm == nil {
		if r, ok := t.norm[n-1].(replaceText); ok && r.old == " " && r.new != "" {
			w.mark, t.norm = r.new, t.norm[:n-1]
			if n > 1 && t.norm[n-2] == normalizer(prepend(w.mark)) {
				w.prefix, w.prefixSpaces, t.norm = prefixAlways, true, t.norm[:n-2]
			}
		}
	}
	w.learnJoins(t.vocab)
	t.marked = w
}
