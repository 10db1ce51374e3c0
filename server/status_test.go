package server

import (
	"encoding/json"
	"net/http"
	"testing"
)

// The status counts what was done, and needs a key where others do.
func TestStatus(t *testing.T) {
	srv := tiny(t, func(o *Options) { o.Keys = []string{"sesame"} })
	ask := func(key string) (*Status, int) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, srv.URL+"/ridge/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		st := new(Status)
		if resp.StatusCode == http.StatusOK {
			if err := json.NewDecoder(resp.Body).Decode(st); err != nil {
				t.Fatal(err)
			}
		}
		return st, resp.StatusCode
	}
	if _, code := ask("wrong"); code != http.StatusUnauthorized {
		t.Errorf("status %d for a wrong key", code)
	}
	code, _, _ := send(t, http.MethodPost, srv.URL+"/v1/completions", `{"prompt":"the cat and the","max_tokens":6,"ignore_eos":true,"temperature":0}`, "Authorization", "Bearer sesame")
	if code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	st, _ := ask("sesame")
	if len(st.Models) != 1 || st.Version != "test" || st.Uptime <= 0 {
		t.Fatalf("%+v", st)
	}
	m := st.Models[0]
	k := m.Memory
	if m.Name != "tiny" || m.GeneratedTokens != 6 || m.PromptTokens < 4 || m.Submitted != 1 || m.Finished["length"] != 1 || m.Running != 0 || m.Steps < 6 || m.Context == 0 || m.Threads != 1 {
		t.Errorf("%+v", m)
	}
	if k.Used+k.Waste+k.Cached+k.Free != k.Slots || k.PageTokens != 16 || k.Slots != k.Pages*16 || k.Used != 0 || k.Cached == 0 {
		t.Errorf("%+v", k)
	}
}
