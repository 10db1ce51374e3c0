package watch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ridge/engine/trace"
	"ridge/server/wire"
)

// What a step of sixteen answers costs: remembered, and told to one who watches, four
// steps at a time.
func BenchmarkSteps(b *testing.B) {
	const seqs, together = 16, 4
	rows := make([]trace.Row, seqs)
	for i := range rows {
		rows[i] = trace.Row{ID: fmt.Sprintf("req_%024d", i), Kind: trace.Decode, Tokens: 1, Context: 1000}
	}
	step := trace.Step{At: time.Unix(1.8e9, 0), Took: 12345678, Predicted: 12e6, Kernels: 11e6, Budget: 512, Rows: rows}
	for name, told := range map[string]bool{"remembered": false, "told": true} {
		b.Run(name, func(b *testing.B) {
			ring := trace.New(64)
			b.ReportAllocs()
			for i := range b.N {
				ring.Record(step, rows)
				if !told || i%together != together-1 {
					continue
				}
				out, err := wire.EncodeJSON(&Steps{"tiny", stepsFor(context.Background(), ring.Steps(int64(i+1-together), mostSteps))})
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(out) / together))
			}
		})
	}
}
