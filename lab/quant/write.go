package quant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ridge/engine"
)

// Lengths of what is timed.
const (
	promptTokens = 512
	answerTokens = 64
)

// speed returns tokens a second of a prompt and of an answer, the quicker of two turns.
func speed(ctx context.Context, e *engine.Engine, text []int32) (prefill, decode float64, err error) {
	for turn := range 2 {
		// Another prompt each time: nothing of it is known.
		prompt := text[turn*promptTokens%max(len(text)-promptTokens, 1):][:min(promptTokens, len(text))]
		var first, end time.Time
		begin, n := time.Now(), 0
		s, err := e.Submit(ctx, engine.Request{Tokens: prompt, MaxTokens: answerTokens, IgnoreEOS: true})
		if err != nil {
			return 0, 0, err
		}
		for {
			ev, ok := s.Next(ctx)
			if ev.Err != nil || !ok {
				break
			}
			if end = time.Now(); n == 0 {
				first = end
			}
			n++
		}
		s.Close()
		if n < 2 {
			return 0, 0, errors.New("expected an answer that can be timed, found none")
		}
		prefill = max(prefill, float64(len(prompt))/first.Sub(begin).Seconds())
		decode = max(decode, float64(n-1)/end.Sub(first).Seconds())
	}
	return prefill, decode, nil
}

// WriteMarkdown writes rows as a table. What was not measured is empty.
func WriteMarkdown(w io.Writer, rows []Row) error {
	out := "| grid | method | bits | bytes | perplexity | KL, 10⁻³ nats (95%) | KL against | difference (95%) | | prefill tok/s | decode tok/s |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
	for _, r := range rows {
		out += fmt.Sprintf("| %s | %s |", r.Grid, r.Method)
		m := r.Measured
		if m == nil {
			out += " | | | | " + r.Against + " | | | | |\n"
			continue
		}
		out += fmt.Sprintf(" %.3f | %d | %.3f | %.3f (%.3f to %.3f) | %s |", m.Bits, m.Bytes, m.Perplexity, 1e3*m.KL.Mean, 1e3*m.KL.Low, 1e3*m.KL.High, r.Against)
		if p := m.Paired; p != nil {
			out += fmt.Sprintf(" %+.3f (%+.3f to %+.3f) | %s |", 1e3*p.KL.Mean, 1e3*p.KL.Low, 1e3*p.KL.High, p.KL.Verdict())
		} else {
			out += " | |"
		}
		for _, v := range []float64{m.Prefill, m.Decode} {
			if v > 0 {
				out += fmt.Sprintf(" %.0f |", v)
			} else {
				out += " |"
			}
		}
		out += "\n"
	}
	_, err := io.WriteString(w, out)
	return err
}

// WriteJSON writes rows, one a line.
func WriteJSON(w io.Writer, rows []Row) error {
	enc := json.NewEncoder(w)
	for i := range rows {
		if err := enc.Encode(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}
