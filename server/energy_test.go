package server

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	root := t.TempDir()
	zone := filepath.Join(root, "class/powercap/intel-rapl:0")
	part := filepath.Join(root, "class/powercap/intel-rapl:0:0")
	for _, dir := range []string{zone, part} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	set := func(dir, file string, n uint64) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatUint(n, 10)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set(zone, "max_energy_range_uj", 10_000_000)
	set(zone, "energy_uj", 9_000_000)
	set(part, "energy_uj", 5)
	m := newMeter(root, 50)
	if m == nil || m.source() != "rapl" {
		t.Fatalf("got %+v", m)
	}
	a := m.read()
	m.add(30) // of others
	m.add(10)
	set(zone, "energy_uj", 3_000_000) // over the end: 4 J
	if j := m.share(a, 10); j != 1 {
		t.Errorf("got %v J, want 1", j)
	}
	set(zone, "energy_uj", 3_500_000)
	if j := m.joules(); j != 4.5 {
		t.Errorf("got %v J in all, want 4.5", j)
	}

	if newMeter(t.TempDir(), 0) != nil {
		t.Error("a meter without anything to measure")
	}
	m = newMeter(t.TempDir(), 20)
	a = m.read()
	m.add(1)
	time.Sleep(10 * time.Millisecond)
	if j := m.share(a, 1); j < 0.2 || j > 20 || m.source() != "declared 20 W" {
		t.Errorf("got %v J from %s", j, m.source())
	}
	var none *meter
	none.add(5)
	if none.share(none.read(), 5) != 0 {
		t.Error("energy without a meter")
	}
}

func TestEnergyInTimings(t *testing.T) {
	srv, _ := scripted(t, "abc", func(o *Options, _ *script) { o.Watts = 10 })
	o := post(t, srv.URL+"/v1/chat/completions", `{`+hello+`}`, 200)
	if j, ok := o.at("timings", "energy_joules").(float64); !ok || j <= 0 || o.at("timings", "energy_source") != "declared 10 W" && o.at("timings", "energy_source") != "rapl" {
		t.Errorf("got %v", o["timings"])
	}
}

// What one server computed of a prompt, another has after reading it.
func TestSessions(t *testing.T) {
	dir := t.TempDir()
	ids := "[[" + "5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40" + "]]"
	first := tiny(t, func(o *Options) { o.DataDir = dir })
	body := `{"prompt":` + ids + `,"max_tokens":4,"temperature":0}`
	want := post(t, first.URL+"/v1/completions", body, 200).at("choices", 0, "text")
	o := post(t, first.URL+"/slots/0?action=save", `{"filename":"a.session","prompt":`+ids+`}`, 200)
	if n, ok := o["n_saved"].(float64); !ok || n < 32 {
		t.Fatalf("got %v", o)
	}
	second := tiny(t, func(o *Options) { o.DataDir = dir })
	o = post(t, second.URL+"/slots/0?action=restore", `{"filename":"a.session"}`, 200)
	if n, ok := o["n_restored"].(float64); !ok || n < 32 {
		t.Fatalf("got %v", o)
	}
	o = post(t, second.URL+"/v1/completions", body, 200)
	equal(t, "text", o.at("choices", 0, "text"), want)
	if n := o.at("usage", "prompt_tokens_details", "cached_tokens").(float64); n < 32 {
		t.Errorf("%v cached tokens", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "sessions", "bad"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	post(t, second.URL+"/slots/0?action=restore", `{"filename":"bad"}`, 400)
	post(t, second.URL+"/slots/0?action=restore", `{"filename":"none"}`, 404)
	post(t, second.URL+"/slots/0?action=restore", `{"filename":"../a"}`, 400)
	post(t, second.URL+"/slots/0?action=juggle", `{"filename":"a"}`, 400)
	post(t, second.URL+"/slots/0?action=save", `{"filename":"a"}`, 400)
	post(t, second.URL+"/slots/0?action=erase", `{"filename":"a.session"}`, 200)
	post(t, second.URL+"/slots/0?action=erase", `{"filename":"a.session"}`, 404)
}
