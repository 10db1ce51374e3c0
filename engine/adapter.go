package engine

import (
	"crypto/sha256"
	"encoding/hex"

	"ridge/model"
)

// adaptedSalt tells prefixes that were computed with different adapters apart. No
// tenant can choose such a salt: theirs begin with a number.
func adaptedSalt(id, salt string) string {
	if id == "" {
		return salt
	}
	sum := sha256.Sum256([]byte(id))
	return "adapter" + hex.EncodeToString(sum[:16]) + ":" + salt
}

// adapterID names what an adapter computes, "" for none.
func adapterID(a *model.Adapter) string {
	if a == nil {
		return ""
	}
	return a.ID
}

// ReadAdapter reads an adapter of the model for requests, see model.Model.ReadAdapter.
func (e *Engine) ReadAdapter(path string) (*model.Adapter, error) { return e.m.ReadAdapter(path) }

// ReadControl reads a control vector of the model for requests, see
// model.Model.ReadControl.
func (e *Engine) ReadControl(path string, first, last int) (*model.Adapter, error) {
	return e.m.ReadControl(path, first, last)
}
