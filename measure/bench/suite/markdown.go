package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ridge/measure/bench"
)

// Markdown returns the tables, what they were measured with and by which
// command, and what is not in them.
func (r *Report) Markdown(command string) string {
	var b strings.Builder
	rows := r.Rows
	for _, t := range r.Suite.Tables {
		var have []Row
		for _, row := range rows[:len(t.Cases)] {
			if row.Measured != nil {
				have = append(have, row)
			}
		}
		rows = rows[len(t.Cases):]
		if len(have) > 0 {
			fmt.Fprintf(&b, "### %s\n\n", t.Title)
			writeTable(&b, have)
			b.WriteByte('\n')
		}
	}
	if foot := r.foot(); foot != "" {
		fmt.Fprintf(&b, "%s\n\n```\n%s\n```\n", foot, command)
	}
	for _, line := range r.missing() {
		fmt.Fprintf(&b, "\n%s\n", line)
	}
	return b.String()
}

// writeTable writes rows that are measured, two columns for each peer.
func writeTable(b *strings.Builder, rows []Row) {
	var peers []string
	for _, r := range rows {
		for _, p := range r.Measured.Result.Peers {
			peers = addNew(peers, p.Name)
		}
	}
	line := func(cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }
	head := []string{"model", "test", "ridge, tok/s"}
	for _, p := range peers {
		head = append(head, p+", tok/s", "ratio (least – most)")
	}
	line(append(head, "ridge, of limit"))
	b.WriteString(strings.Repeat("|---", len(head)+1) + "|\n")
	for _, r := range rows {
		res := r.Measured.Result
		cells := []string{r.ModelText(), r.TestText(), speedText(res.Speed)}
		for _, name := range peers {
			speed, ratio := "", ""
			for _, p := range res.Peers {
				if p.Name == name {
					speed, ratio = speedText(p.Speed), fmt.Sprintf("%.2f (%.2f – %.2f)", p.Ratio, p.RatioMin, p.RatioMax)
				}
			}
			cells = append(cells, speed, ratio)
		}
		line(append(cells, res.LimitText()))
	}
}

// speedText is a median and a standard deviation, with as many digits as mean
// something.
func speedText(s bench.Spread) string {
	if s.Median < 50 {
		return fmt.Sprintf("%.1f ± %.1f", s.Median, s.StdDev)
	}
	return fmt.Sprintf("%.0f ± %.0f", s.Median, s.StdDev)
}

// foot says where, when and with what the rows were measured, "" if none was.
func (r *Report) foot() string {
	var cpus, builds, tiers, threads, days, peers []string
	versions := map[string][]string{}
	pairs, share := 0, 1.0
	for _, row := range r.Rows {
		if row.Measured == nil {
			continue
		}
		res := row.Measured.Result
		cpus, builds, tiers = addNew(cpus, res.CPU), addNew(builds, res.Build), addNew(tiers, res.Tier)
		threads = addNew(threads, fmt.Sprint(res.Threads))
		days = addNew(days, res.Time.UTC().Format("2 January 2006"))
		if res.Share > 0 {
			share = min(share, res.Share)
		}
		if pairs == 0 || len(res.Seconds) < pairs {
			pairs = len(res.Seconds)
		}
		for _, p := range res.Peers {
			peers = addNew(peers, p.Name)
			if p.Version != "" {
				versions[p.Name] = addNew(versions[p.Name], p.Version)
			}
		}
	}
	if pairs == 0 {
		return ""
	}
	for i, p := range peers {
		if v := versions[p]; len(v) > 0 {
			peers[i] += " build " + strings.Join(v, ", ")
		} else {
			peers[i] += " (tells no version)"
		}
	}
	and := func(list []string) string { return strings.Join(list, " and ") }
	text := fmt.Sprintf("%s, %d processors, kernels %s, threads %s, %s; ridge %s", and(cpus), r.Processors, and(tiers), and(threads), and(days), and(builds))
	if len(peers) > 0 {
		text += "; " + strings.Join(peers, "; ")
	}
	text += fmt.Sprintf(". Medians ± standard deviations of at least %d measurements in turns.", pairs)
	if share < bench.BusyShare {
		text += fmt.Sprintf(" The machine was busy: a test got %.0f%% of the processor time of its threads.", 100*share)
	}
	return text
}

// missing says what the tables do not have and why, a line for each reason.
func (r *Report) missing() []string {
	var open []string
	out, failed, without, parts := map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string][]string{}
	for _, row := range r.Rows {
		switch {
		case row.LeftOut != "":
			out[row.LeftOut] = append(out[row.LeftOut], row.Name())
		case row.Err != nil:
			failed[row.Err.Error()] = append(failed[row.Err.Error()], row.Name())
		case row.Measured == nil:
			open = append(open, row.Name())
		default:
			for _, p := range row.NoPeers {
				without[p] = append(without[p], row.Name())
			}
			for _, why := range row.Measured.Result.LeftOut {
				parts[why] = append(parts[why], row.Name())
			}
		}
	}
	var lines []string
	add := func(format string, groups map[string][]string) {
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			lines = append(lines, fmt.Sprintf(format, oneLine(key), strings.Join(groups[key], "; ")))
		}
	}
	add("Measured without %s, which was not given: %s.", without)
	add("%s (%s).", parts)
	add("Left out (%s): %s.", out)
	add("Failed (%s): %s.", failed)
	if len(open) > 0 {
		lines = append(lines, fmt.Sprintf("Not measured yet: %s.", strings.Join(open, "; ")))
	}
	return lines
}

// oneLine makes text from elsewhere, such as an error, a part of a line that no
// reader of Markdown or of markers takes for more.
func oneLine(s string) string {
	return strings.NewReplacer("<", "‹", ">", "›", "`", "'").Replace(strings.Join(strings.Fields(s), " "))
}
