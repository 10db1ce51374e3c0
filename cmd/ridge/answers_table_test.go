package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ridge/hub"
	"ridge/internal/builtin"
)

// The table of measured answers in docs/models.md has the catalogue's names, sizes
// and counts, all of them, and README.md those of the default.
func TestAnswersTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "<!-- answers: begin -->")
	table, _, ended := strings.Cut(table, "<!-- answers: end -->")
	if !ok || !ended {
		t.Fatal("docs/models.md: no table between answers: begin and end")
	}
	rows := map[string][]string{}
	name := regexp.MustCompile("^`([^`]+)`( \\((base model|default)\\))?$")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if m := name.FindStringSubmatch(strings.TrimSpace(cells[0])); m != nil && len(cells) == 5 {
			rows[m[1]] = append(cells[1:], m[3])
		}
	}
	tiny := builtin.List()[0]
	measured := []hub.Entry{{Name: tiny.Name, Answers: tinyAnswers, Sources: []hub.CatalogSource{{Size: tiny.Size}}}}
	for _, e := range hub.Catalog() {
		if e.Answers > 0 {
			measured = append(measured, e)
		}
		if e.Default {
			readme, err := os.ReadFile("../../README.md")
			want := fmt.Sprintf("%.0f MiB, which answers %d of", float64(e.Size())/(1<<20), e.Answers)
			if err != nil || !strings.Contains(string(readme), want) {
				t.Errorf("README.md: expected %q, %v", want, err)
			}
		}
	}
	for _, e := range measured {
		row := rows[e.Name]
		if row == nil {
			t.Errorf("%s: no row in the table", e.Name)
			continue
		}
		delete(rows, e.Name)
		right, _, _ := strings.Cut(row[0], " ")
		if n, err := strconv.Atoi(right); err != nil || n != e.Answers || row[1] != bytesText(e.Size()) {
			t.Errorf("%s: table has %s right and %s, the catalogue %d and %s", e.Name, right, row[1], e.Answers, bytesText(e.Size()))
		}
		if (row[4] == "default") != e.Default || (row[4] == "base model") != e.Base {
			t.Errorf("%s: marked %q", e.Name, row[4])
		}
	}
	for name := range rows {
		t.Errorf("%s is in the table and not measured in the catalogue", name)
	}
}

// tinyAnswers is what the embedded model answers rightly, which is in no catalogue.
const tinyAnswers = 15
