package server

import "testing"

func TestEnergyInTimings(t *testing.T) {
	srv, _ := scripted(t, "abc", func(o *Options, _ *script) { o.Watts = 10 })
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`}`, 200)
	if j, ok := o.at("timings", "energy_joules").(float64); !ok || j <= 0 || o.at("timings", "energy_source") != "declared 10 W" && o.at("timings", "energy_source") != "rapl" {
		t.Errorf("got %v", o["timings"])
	}
}
