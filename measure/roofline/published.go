package roofline

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed machines.json
var publishedJSON []byte

// spec is a computer as its makers describe it.
type spec struct {
	ID    string  `json:"id"`
	Name  string  `json:"name"`
	Tier  string  `json:"kernels"`
	Cores int     `json:"cores"`
	Clock float64 `json:"base_ghz"`
	Read  float64 `json:"read_gb_s"` // of all memory channels
	Int   float64 `json:"int8_ops_per_cycle"`
	Float float64 `json:"f32_ops_per_cycle"`
	L2    float64 `json:"l2_mib"`
	L3    float64 `json:"l3_mib"`
}

const (
	// publishedRead is the part of the memory channels' rate that programs
	// read at: 0.75 to 0.9 on most machines.
	publishedRead = 0.8
	// publishedCore bounds what one core reads, in bytes per second; makers do
	// not say.
	publishedCore = 20e9
	// publishedRegion is about what a parallel region of all cores takes, in
	// seconds.
	publishedRegion = 1e-6
)

const publishedNote = "computed from published figures, not measured: 0.8 of the memory channels' rate, operations at the base clock, kernels at the part of the peak that they reach elsewhere"

func specs() []spec {
	var list []spec
	if err := json.Unmarshal(publishedJSON, &list); err != nil {
		panic(fmt.Sprintf("roofline: machines.json: %v", err))
	}
	return list
}

// PublishedNames returns the short names of the machines that are known from
// published figures, sorted.
func PublishedNames() []string {
	var names []string
	for _, s := range specs() {
		names = append(names, s.ID)
	}
	slices.Sort(names)
	return names
}

// PublishedMachine returns a machine computed from published figures by its
// short name.
func PublishedMachine(name string) (*Machine, error) {
	for _, s := range specs() {
		if strings.EqualFold(s.ID, name) {
			return s.machine(), nil
		}
	}
	return nil, fmt.Errorf("roofline: machine: expected a file or one of %s, found %q", strings.Join(PublishedNames(), ", "), name)
}

func (s *spec) machine() *Machine {
	m := &Machine{
		Name: s.Name, Source: Published, Note: publishedNote, Arch: "amd64", Tier: s.Tier, Cores: s.Cores,
		L2: int64(s.L2 * (1 << 20)), L3: int64(s.L3 * (1 << 20)),
	}
	all := publishedRead * s.Read * 1e9
	for _, n := range []int{1, s.Cores} {
		read := min(all, max(all*float64(n)/float64(s.Cores), min(all, publishedCore)))
		ops := float64(n) * s.Clock * 1e9
		m.Threads = append(m.Threads, ThreadRates{
			Threads: n, Read: []ReadPoint{{1 << 30, read}}, IntOps: ops * s.Int, FloatOps: ops * s.Float, Region: publishedRegion,
		})
	}
	m.Threads[0].Region = 0
	return m
}
