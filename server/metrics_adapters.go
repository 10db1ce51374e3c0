package server

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"ridge/server/adapters"
)

// adapterCollector reads the numbers of adapters when they are asked for.
type adapterCollector struct{ adapters *adapters.Set }

// Describe sends nothing: the collector is unchecked, adapters come and go.
func (c *adapterCollector) Describe(chan<- *prometheus.Desc) {}

var (
	adapterRequests = prometheus.NewDesc("ridge_adapter_requests", "Requests that have an adapter now.", []string{"adapter", "model"}, nil)
	adapterWaiting  = prometheus.NewDesc("ridge_adapter_requests_waiting", "Requests that wait for room for an adapter.", []string{"adapter", "model"}, nil)
	adapterBytes    = prometheus.NewDesc("ridge_adapter_bytes", "Memory of an adapter's matrices, 0 if they are not loaded.", []string{"adapter", "model"}, nil)
	adapterLoads    = prometheus.NewDesc("ridge_adapter_loads_total", "Adapters that were read from their files.", nil, nil)
	adapterEvicted  = prometheus.NewDesc("ridge_adapter_evictions_total", "Adapters that made room for others.", nil, nil)
	adapterInfo     = prometheus.NewDesc("vllm:lora_requests_info", "Adapters of requests that run and that wait, and how many may be loaded (0: any number).", []string{"running_lora_adapters", "waiting_lora_adapters", "max_lora"}, nil)
)

// Collect asks the adapters.
func (c *adapterCollector) Collect(out chan<- prometheus.Metric) {
	var running, waiting []string
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, a := range c.adapters.Infos() {
		if a.Running > 0 {
			running = append(running, a.Name)
		}
		if a.Waiting > 0 {
			waiting = append(waiting, a.Name)
		}
		bytes := 0.0
		if a.Loaded {
			bytes = float64(a.Bytes)
		}
		gauge(adapterRequests, float64(a.Running), a.Name, a.Base)
		gauge(adapterWaiting, float64(a.Waiting), a.Name, a.Base)
		gauge(adapterBytes, bytes, a.Name, a.Base)
	}
	loads, evicted := c.adapters.Counts()
	out <- prometheus.MustNewConstMetric(adapterLoads, prometheus.CounterValue, float64(loads))
	out <- prometheus.MustNewConstMetric(adapterEvicted, prometheus.CounterValue, float64(evicted))
	slices.Sort(running)
	slices.Sort(waiting)
	gauge(adapterInfo, 1, strings.Join(running, ","), strings.Join(waiting, ","), strconv.Itoa(c.adapters.MaxLoaded))
}
