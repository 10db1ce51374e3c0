package server

import (
	"net/http"
	"testing"

	"ridge/engine"
)

// A response in the background is told at once, made when its client has gone, asked for
// until it is there, and cancelled; one that fails says why.
func TestBackgroundResponse(t *testing.T) {
	begun, wait := make(chan struct{}, 4), make(chan struct{})
	srv, b := scripted(t, "An answer.", func(_ *Options, s *script) {
		s.hold = func(_ *engine.Request, token int) <-chan struct{} {
			if token != 3 {
				return nil
			}
			select {
			case begun <- struct{}{}:
			default:
			}
			return wait
		}
	})
	start := func() string {
		o := post(t, srv.URL+"/v1/responses", `{"input":"go","background":true}`, 200)
		equal(t, "first", o.at("status"), "queued")
		equal(t, "background", o.at("background"), true)
		<-begun
		id := o.at("id").(string)
		equal(t, "meanwhile", get(t, srv.URL+"/v1/responses/"+id, 200).at("status"), "in_progress")
		return id
	}
	state := func(id string) object {
		var o object
		until(t, "it ends", func() bool {
			o = get(t, srv.URL+"/v1/responses/"+id, 200)
			return o.at("status") != "in_progress"
		})
		return o
	}
	id := start()
	equal(t, "cancel", post(t, srv.URL+"/v1/responses/"+id+"/cancel", "", 200).at("status"), "cancelled")
	o := state(id)
	equal(t, "cancelled", o.at("status"), "cancelled")
	equal(t, "its error", o.at("error"), nil)
	id = start()
	close(wait)
	o = state(id)
	equal(t, "then", o.at("status"), "completed")
	equal(t, "text", o.at("output", 0, "content", 0, "text"), "An answer.")
	o = post(t, srv.URL+"/v1/responses", `{"input":"on","previous_response_id":"`+id+`"}`, 200)
	equal(t, "the next one", o.at("status"), "completed")
	b.broke = engine.ErrNoToken
	o = state(post(t, srv.URL+"/v1/responses", `{"input":"go","background":true}`, 200).at("id").(string))
	equal(t, "failed", o.at("status"), "failed")
	if s, _ := o.at("error", "message").(string); s == "" {
		t.Errorf("no error is told: %v", o)
	}
	for _, bad := range []string{`"store":false`, `"stream":true`} {
		o := post(t, srv.URL+"/v1/responses", `{"input":"go","background":true,`+bad+`}`, http.StatusBadRequest)
		equal(t, bad, o.at("error", "param"), "background")
	}
}
