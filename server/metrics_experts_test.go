package server

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"ridge/engine"
	"ridge/model"
)

type expertCollector []model.ExpertLoad

func (c expertCollector) Describe(chan<- *prometheus.Desc) {}
func (c expertCollector) Collect(out chan<- prometheus.Metric) {
	collectExperts(out, "m", &engine.Stats{Experts: c})
}

// The load of experts is four numbers for each layer.
func TestExpertMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(expertCollector{{Layer: 1, Experts: 8, Chosen: 80, Busiest: 20, Idle: 3, Read: 30}})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if l := m.GetLabel(); len(l) != 2 || l[0].GetValue() != "1" || l[1].GetValue() != "m" {
				t.Errorf("%s: labels %v", f.GetName(), l)
			}
		}
	}
	want := map[string]float64{"ridge_expert_rows_total": 80, "ridge_expert_reads_total": 30, "ridge_expert_imbalance_ratio": 2, "ridge_experts_idle": 3}
	if !maps.Equal(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
}
