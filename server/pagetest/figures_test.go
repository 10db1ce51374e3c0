package pagetest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ridge/measure/bench/load"
)

// The links of a report of bench serve give pictures: a browser reads the SVG files
// and makes PNG files of them.
func TestFiguresOfReports(t *testing.T) {
	r := &load.Report{Target: "ridge", Workload: "fixed", Load: "one client", Duration: 2, Records: []load.Record{{
		First: 200 * time.Millisecond, Last: time.Second, End: time.Second, Pieces: []time.Duration{200 * time.Millisecond, time.Second}, Output: 2, Prompt: 3,
	}}}
	file := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := load.HTML(f, []*load.Report{r}, "test"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b := browse(t, "file://"+file, 1200, 800)
	b.until(`document.querySelectorAll("figure svg").length === 7 && document.querySelectorAll("a[data-png]").length === 7`)
	// The link is not followed: a download would leave the test's reach.
	value[any](b, `(() => { for (const a of document.querySelectorAll("a[data-png]")) { a.addEventListener("click", (e) => a.dataset.png && e.preventDefault()); a.click(); } })()`)
	b.until(`[...document.querySelectorAll("a[data-png]")].every((a) => a.href.startsWith("data:image/png;base64,") && a.href.length > 5000)`)
}
