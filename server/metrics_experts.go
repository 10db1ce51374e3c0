package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"ridge/engine"
)

var (
	expertRows  = prometheus.NewDesc("ridge_expert_rows_total", "Experts that rows of a layer have chosen.", []string{"model", "layer"}, nil)
	expertReads = prometheus.NewDesc("ridge_expert_reads_total", "Experts of a layer that were read, in a step one for all rows that chose it.", []string{"model", "layer"}, nil)
	expertLoad  = prometheus.NewDesc("ridge_expert_imbalance_ratio", "How many times its share the busiest expert of a layer has, 1 if all are chosen alike.", []string{"model", "layer"}, nil)
	expertIdle  = prometheus.NewDesc("ridge_experts_idle", "Experts of a layer that no row has chosen.", []string{"model", "layer"}, nil)
)

// collectExperts sends how a model's experts are used: four numbers for each layer
// that has some, however many experts there are.
func collectExperts(out chan<- prometheus.Metric, name string, st *engine.Stats) {
	for i := range st.Experts {
		l := &st.Experts[i]
		layer := strconv.Itoa(l.Layer)
		out <- prometheus.MustNewConstMetric(expertRows, prometheus.CounterValue, float64(l.Chosen), name, layer)
		out <- prometheus.MustNewConstMetric(expertReads, prometheus.CounterValue, float64(l.Read), name, layer)
		out <- prometheus.MustNewConstMetric(expertLoad, prometheus.GaugeValue, l.Imbalance(), name, layer)
		out <- prometheus.MustNewConstMetric(expertIdle, prometheus.GaugeValue, float64(l.Idle), name, layer)
	}
}
