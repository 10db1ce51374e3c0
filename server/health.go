package server

import (
	"net/http"
	"time"

	"ridge/server/fault"
	"ridge/server/wire"
)

// health is liveness and readiness in one, as llama-server has it.
func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	if err := s.notReady(); err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// live says that the process answers and its engines do steps.
func (s *Server) live(w http.ResponseWriter, r *http.Request) error {
	for _, m := range s.lib.Loaded() {
		if err := m.Sick(); err != nil && !s.draining.Load() {
			return fault.Unavailable(0, "%s: %v", m.Info().Name, err)
		}
	}
	wire.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// ready says whether requests should be sent here.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error { return s.health(w, r) }

func (s *Server) notReady() error {
	if s.draining.Load() {
		return fault.Unavailable(5*time.Second, "the server is shutting down")
	}
	for _, m := range s.lib.Loaded() {
		if err := m.Sick(); err != nil {
			return fault.Unavailable(5*time.Second, "%s: %v", m.Info().Name, err)
		}
	}
	if err := s.lib.Broken(); err != nil {
		return fault.Unavailable(5*time.Second, "no model can answer: %v", err)
	}
	return nil
}
