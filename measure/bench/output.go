package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ridge/weights/tensor"
)

// Formats are the names of the forms that NewWriter knows.
var Formats = []string{"md", "csv", "json", "jsonl"}

// Writer prints results.
type Writer interface {
	Write(*Result) error
	Close() error // prints what comes after the last result
}

// NewWriter returns a writer of the given format: "md" for llama-bench's table
// with the achieved rates and their part of the machine's limit, "csv", "json"
// for one array, "jsonl" for one object a line.
func NewWriter(w io.Writer, format string) (Writer, error) {
	switch format {
	case "md":
		return &tableWriter{w: w}, nil
	case "csv":
		return &csvWriter{w: csv.NewWriter(w)}, nil
	case "json", "jsonl":
		return &jsonWriter{w: w, lines: format == "jsonl"}, nil
	}
	return nil, fmt.Errorf("bench: output: expected one of %v, found %q", Formats, format)
}

type jsonWriter struct {
	w     io.Writer
	lines bool
	n     int
}

func (j *jsonWriter) Write(r *Result) error {
	if j.lines {
		return json.NewEncoder(j.w).Encode(r)
	}
	b, err := json.MarshalIndent(r, "  ", "  ")
	if err != nil {
		return err
	}
	open := ",\n  "
	if j.n == 0 {
		open = "[\n  "
	}
	j.n++
	_, err = fmt.Fprintf(j.w, "%s%s", open, b)
	return err
}

func (j *jsonWriter) Close() error {
	end := "\n]\n"
	if j.lines {
		return nil
	} else if j.n == 0 {
		end = "[]\n"
	}
	_, err := io.WriteString(j.w, end)
	return err
}

// csvWriter writes the numbers of a record, with a line for each peer.
type csvWriter struct {
	w     *csv.Writer
	begun bool
}

var csvHead = []string{"build_commit", "cpu_info", "backends", "kernels", "model_filename", "model_type", "model_size", "model_n_params",
	"n_batch", "n_threads", "type_k", "type_v", "activations", "n_seqs", "n_prompt", "n_gen", "n_depth", "test_time", "avg_ns", "stddev_ns",
	"avg_ts", "stddev_ts", "median_ts", "min_ts", "max_ts", "step_p50_ms", "step_p99_ms", "bytes_per_s", "ops_per_s",
	"probe_read_bytes_per_s", "probe_int8_ops_per_s", "probe_f32_ops_per_s", "of_bound", "limit", "load_average", "cpu_share", "ratio"}

func (c *csvWriter) Write(r *Result) error {
	if !c.begun {
		c.begun = true
		c.w.Write(csvHead)
	}
	rec := r.record()
	f := func(v float64) string { return strconv.FormatFloat(v, 'g', 7, 64) }
	line := []string{rec.Build, rec.CPU, rec.Backends, rec.Tier, rec.File, rec.Type, fmt.Sprint(rec.Size), fmt.Sprint(rec.Parameters),
		fmt.Sprint(rec.Batch), fmt.Sprint(rec.Threads), rec.TypeK, rec.TypeV, rec.Act, fmt.Sprint(rec.Seqs), fmt.Sprint(rec.Prompt), fmt.Sprint(rec.Gen),
		fmt.Sprint(rec.Depth), rec.Time, fmt.Sprint(rec.AvgNS), fmt.Sprint(rec.StdNS), f(rec.AvgTS), f(rec.StdTS), f(rec.MedianTS), f(rec.MinTS), f(rec.MaxTS),
		f(rec.StepP50), f(rec.StepP99), f(rec.Bytes), f(rec.Ops), f(rec.ReadRate), f(rec.IntRate), f(rec.FloatRate), f(rec.Bound), rec.Limit,
		f(rec.LoadAfter), f(rec.Share), ""}
	c.w.Write(line)
	for _, p := range r.Peers {
		line := slices.Clone(line)
		for i, name := range csvHead {
			switch name {
			case "build_commit":
				line[i] = p.Version
			case "backends":
				line[i] = p.Name
			case "avg_ts":
				line[i] = f(p.Speed.Mean)
			case "stddev_ts":
				line[i] = f(p.Speed.StdDev)
			case "median_ts":
				line[i] = f(p.Speed.Median)
			case "min_ts":
				line[i] = f(p.Speed.Min)
			case "max_ts":
				line[i] = f(p.Speed.Max)
			case "ratio":
				line[i] = f(p.Ratio)
			case "kernels", "avg_ns", "stddev_ns", "step_p50_ms", "step_p99_ms", "bytes_per_s", "ops_per_s", "of_bound", "limit", "cpu_share":
				line[i] = ""
			}
		}
		c.w.Write(line)
	}
	c.w.Flush()
	return c.w.Error()
}

func (c *csvWriter) Close() error { c.w.Flush(); return c.w.Error() }

// tableWriter prints a Markdown table at the end, when it knows the widths.
type tableWriter struct {
	w       io.Writer
	results []*Result
}

func (t *tableWriter) Write(r *Result) error {
	t.results = append(t.results, r)
	return nil
}

func (t *tableWriter) Close() error {
	if len(t.results) == 0 {
		return nil
	}
	tab := tableOf(t.results, false)
	if err := tab.write(t.w); err != nil {
		return err
	}
	_, err := io.WriteString(t.w, "\n"+foot(t.results))
	return err
}

// tableOf returns the table of results, with the times of steps if they are asked for.
func tableOf(results []*Result, steps bool) (tab table) {
	kvs, showAct, peers := map[tensor.DType]bool{}, false, false
	for _, r := range results {
		kvs[r.KV] = true
		showAct = showAct || r.Act != 0
		peers = peers || len(r.Peers) > 0
	}
	showKV := len(kvs) > 1 || !kvs[tensor.F16]
	head := []string{"model", "-size", "-params", "backend", "-threads"}
	if showKV {
		head = append(head, "-kv")
	}
	if showAct {
		head = append(head, "-act")
	}
	head = append(head, "-test", "-t/s", "-min – max", "-GB/s", "-GOP/s", "of limit")
	if steps {
		head = append(head, "-step p50 ms", "-p99 ms")
	}
	if peers {
		head = append(head, "-ridge / peer")
	}
	tab.head = head
	for _, r := range results {
		start := []string{r.Model, sizeText(r.Size), paramsText(r.Parameters)}
		middle := []string{strconv.Itoa(r.Threads)}
		if showKV {
			middle = append(middle, kvName(r.KV))
		}
		if showAct {
			middle = append(middle, r.Act.String())
		}
		middle = append(middle, r.Work.String())
		row := append(append(append([]string{}, start...), "ridge "+r.Tier), middle...)
		row = append(row, spreadText(r.Speed), rangeText(r.Speed), fmt.Sprintf("%.1f", r.Bytes()/1e9), fmt.Sprintf("%.1f", r.Ops()/1e9), r.LimitText())
		if steps {
			row = append(row, stepText(r.StepP50), stepText(r.StepP99))
		}
		if peers {
			row = append(row, "")
		}
		tab.rows = append(tab.rows, row)
		for _, p := range r.Peers {
			row := append(append(append([]string{}, start...), p.Name), middle...)
			row = append(row, spreadText(p.Speed), rangeText(p.Speed), "", "", "")
			if steps {
				row = append(row, "", "")
			}
			row = append(row, fmt.Sprintf("%.2f (%.2f – %.2f)", p.Ratio, p.RatioMin, p.RatioMax))
			tab.rows = append(tab.rows, row)
		}
	}
	return tab
}

// BusyShare is the share of processor time below which other programs must have
// run.
const BusyShare = 0.9

// foot says where and how the table was made.
func foot(results []*Result) string {
	first, last := results[0], results[len(results)-1]
	s := fmt.Sprintf("%s, %s, ridge %s; median ± standard deviation of %d, load average %.1f at the start and %.1f at the end\n",
		first.CPU, first.Time.UTC().Format("2006-01-02 15:04"), first.Build, len(first.Seconds), first.LoadBefore, last.LoadAfter)
	least := 1.0
	for _, r := range results {
		if text := r.AttnText(); text != "" {
			s += text + "\n"
		}
		if r.Share > 0 {
			least = min(least, r.Share)
		}
	}
	if least < BusyShare {
		s += fmt.Sprintf("the machine was busy: a test got %.0f%% of the processor time of its threads\n", 100*least)
	}
	if slices.ContainsFunc(results, func(r *Result) bool { return r.Cost.Brains() > 0 && r.FloatRate > 0 && r.BrainRate == 0 }) {
		s += "this processor has no bf16 products that kernels use: they are counted as the f32 products that stand for them\n"
	}
	seen := map[string]bool{}
	for _, r := range results {
		for _, p := range r.Peers {
			if p.Version != "" && !seen[p.Name] {
				seen[p.Name] = true
				s += fmt.Sprintf("%s: build %s\n", p.Name, p.Version)
			}
		}
		for _, why := range r.LeftOut {
			s += why + "\n"
		}
	}
	return s
}

// LimitText is "87% of 31.2 GB/s", "" if the limit was not measured.
func (r *Result) LimitText() string {
	switch r.Limit {
	case "read":
		return fmt.Sprintf("%.0f%% of %.1f GB/s", 100*r.Bound, r.ReadRate/1e9)
	case "int8":
		return fmt.Sprintf("%.0f%% of %.0f int8 GOP/s", 100*r.Bound, r.IntRate/1e9)
	case "bf16":
		return fmt.Sprintf("%.0f%% of %.0f bf16 GOP/s", 100*r.Bound, r.BrainRate/1e9)
	case "f32":
		return fmt.Sprintf("%.0f%% of %.0f f32 GOP/s", 100*r.Bound, r.FloatRate/1e9)
	}
	return ""
}

func spreadText(s Spread) string { return fmt.Sprintf("%.2f ± %.2f", s.Median, s.StdDev) }
func rangeText(s Spread) string  { return fmt.Sprintf("%.1f – %.1f", s.Min, s.Max) }

// stepText is milliseconds of a step that generates, "" of a work without such.
func stepText(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", 1e3*seconds)
}

func sizeText(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

func paramsText(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.2f M", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f B", float64(n)/1e9)
}

func kvName(t tensor.DType) string { return strings.ToLower(t.String()) }

// table is a Markdown table. A head that starts with "-" is of a column that is
// aligned to the right.
type table struct {
	head []string
	rows [][]string
}

func (t *table) write(w io.Writer) error {
	widths := make([]int, len(t.head))
	right := make([]bool, len(t.head))
	for i, h := range t.head {
		h, right[i] = strings.CutPrefix(h, "-")
		t.head[i] = h
		widths[i] = utf8.RuneCountInString(h)
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if right[i] {
				c = pad + c
			} else {
				c += pad
			}
			b.WriteString("| " + c + " ")
		}
		b.WriteString("|\n")
	}
	line(t.head)
	rules := make([]string, len(t.head))
	for i, w := range widths {
		rules[i] = strings.Repeat("-", w)
		if right[i] {
			rules[i] = rules[i][1:] + ":"
		}
	}
	line(rules)
	for _, r := range t.rows {
		line(r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
