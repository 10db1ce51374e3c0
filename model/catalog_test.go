package model

import (
	"testing"

	"ridge/hub"
)

// Every model of the catalogue is of an architecture that Open knows.
func TestCatalogueArchitectures(t *testing.T) {
	for _, e := range hub.Catalog() {
		if byName(e.Arch) == nil {
			t.Errorf("%s: no architecture %q", e.Name, e.Arch)
		}
	}
}
