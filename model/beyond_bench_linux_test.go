package model

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ridge/kvcache"
	"ridge/weights/tensor"
)

// BenchmarkBeyond decodes with the model of RIDGE_BEYOND_MODEL, which must not fit
// into memory: as Open has it, and with all weights where the file is mapped and
// the system pages them. Both must choose the same tokens. For the second the
// limit has to be that of a control group.
func BenchmarkBeyond(b *testing.B) {
	path := os.Getenv("RIDGE_BEYOND_MODEL")
	if path == "" {
		b.Skip("RIDGE_BEYOND_MODEL names no model")
	}
	o := Options{KV: tensor.F16, Context: 256}
	o.KeepPacked(func(s string) { b.Log(s) })
	answers := [2][]int32{}
	for i, name := range []string{"kept", "paged"} {
		b.Run(name, func(b *testing.B) {
			m, err := Open(path, o)
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			if m.Beyond() == nil {
				b.Fatalf("the model fits into memory: %+v", kvcache.ReadLimits())
			}
			if name == "paged" {
				pageAll(m)
			}
			seq := m.Pool().NewSeq()
			defer m.Pool().Free(seq)
			tokens := []int32{1, 20, 97, 5, 300, 17, 2000, 31}
			next := func() {
				if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: tokens, Outputs: 1}}}); err != nil {
					b.Fatal(err)
				}
				l := m.Logits(0)
				best := int32(slices.Index(l, slices.Max(l)))
				tokens, answers[i] = []int32{best}, append(answers[i], best)
			}
			next()
			next()
			read := deviceReads(b)
			for b.Loop() {
				next()
			}
			b.ReportMetric(float64(deviceReads(b)-read)/float64(b.N)/(1<<20), "device-MiB/token")
			if found, read, _ := m.Beyond().Experts(); found+read > 0 {
				b.ReportMetric(100*float64(found)/float64(found+read), "%experts-found")
			}
		})
	}
	if n := min(len(answers[0]), len(answers[1])); !slices.Equal(answers[0][:n], answers[1][:n]) {
		b.Errorf("kept chose %v, paged %v", answers[0], answers[1])
	}
}

// pageAll has m read all its weights where their file is mapped.
func pageAll(m *Model) {
	m.net.ahead = nil
	m.beyond.layers.close()
	m.beyond.layers = nil
	for i := range m.net.Layers {
		if x := m.net.Layers[i].mixture(); x != nil {
			x.Fetch = nil
		}
	}
	for i, p := range m.w.packed {
		p.Data = m.w.file.Bytes(i)
	}
	for _, a := range m.w.arenas {
		a.Free()
	}
	m.w.arenas = nil
	if c := m.beyond.experts; c != nil {
		for _, a := range c.mem {
			a.Free()
		}
	}
}

// deviceReads returns the bytes that this process has had read from disks.
func deviceReads(b *testing.B) int64 {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nread_bytes: ")
	n, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 10, 64)
	if err != nil {
		b.Skip(err)
	}
	return n
}
