package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"ridge/hub"
)

// The default comes first; what does not fit, was not measured, or was not made
// to chat is not offered.
func TestOffers(t *testing.T) {
	all := offers(0)
	if len(all) < 3 || all[0].Name != defaultModel() || !all[0].Default {
		t.Fatalf("offers: %+v", all)
	}
	for i, e := range all {
		if e.Base || e.Answers == 0 || i > 1 && e.Answers > all[i-1].Answers {
			t.Errorf("%d: %s, base %v, %d answers", i, e.Name, e.Base, e.Answers)
		}
	}
	few := offers(200 << 20)
	if len(few) != 1 || few[0].Name != entryOf(smallModel) {
		t.Errorf("with 200 MiB: %+v", few)
	}
	if none := offers(1); len(none) != 0 {
		t.Errorf("with 1 byte: %+v", none)
	}
}

func TestAsk(t *testing.T) {
	list := []hub.Entry{{Name: "a:1b", Aliases: []string{"a"}, Answers: 70}, {Name: "b:1b", Answers: 90, Sources: []hub.CatalogSource{{Size: 5 << 20}}}}
	for typed, want := range map[string]choice{
		"\n": {"a:1b", false}, "y\n": {"a:1b", false}, "1\n": {"a:1b", true}, "2\n": {"b:1b", true}, " b:1b \n": {"b:1b", true}, "A\n": {"a:1b", true},
		"n\n": {}, "tiny\n": {}, "": {}, "3\nx\n2\n": {"b:1b", true}, "0\n": {}, "-1\nno\n": {},
	} {
		var out strings.Builder
		if got := ask(t.Context(), strings.NewReader(typed), &out, list); got != want {
			t.Errorf("%q: %+v, want %+v", typed, got, want)
		}
		if s := out.String(); !strings.Contains(s, "answers 90 of 100") || !strings.Contains(s, "5.0 MiB") || !strings.Contains(s, "Enter for a:1b") {
			t.Errorf("%q: %s", typed, s)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, _ := io.Pipe()
	if got := ask(ctx, r, io.Discard, list); got != (choice{}) {
		t.Errorf("interrupted: %+v", got)
	}
}

// What was picked is tried first, then the small model, each failure in a line.
func TestFirstOf(t *testing.T) {
	slow := fmt.Errorf("hub: x: stopped: %w", &slowError{left: 100 << 20, rate: 1 << 10})
	small := entryOf(smallModel)
	for _, tc := range []struct {
		picked     string
		fail       map[string]error
		name, says string
	}{
		{"big", nil, "big", ""},
		{"big", map[string]error{"big": slow}, small, "big is left: at 1.0 KiB/s its 100.0 MiB would take about 28 hours: trying " + small},
		{"big", map[string]error{"big": errors.New("no\n  sources")}, small, "big cannot be had (no sources): trying " + small},
		{"big", map[string]error{"big": slow, small: slow}, "", small + " is left: at 1.0 KiB/s"},
		{small, map[string]error{small: slow}, "", small + " is left"},
		{"big", map[string]error{"big": context.Canceled}, "", "canceled"},
	} {
		var tried []string
		text := ""
		name, err := firstOf(choice{name: tc.picked}, func(name string) error { tried = append(tried, name); return tc.fail[name] },
			func(format string, a ...any) { text += fmt.Sprintf(format, a...) })
		if err != nil {
			text += err.Error()
		}
		if name != tc.name || !strings.Contains(text, tc.says) || strings.Contains(text, "\n") || !slices.IsSortedFunc(tried, func(a, b string) int { return strings.Compare(a, b) }) {
			t.Errorf("%+v: %s after %v, %q", tc, name, tried, text)
		}
	}
}

// The first seconds of a download decide: what was here before does not count.
func TestSlowWatch(t *testing.T) {
	defer func(d time.Duration) { measureFor = d }(measureFor)
	measureFor = 10 * time.Millisecond
	watch := func(most time.Duration, feed func(b hub.Bar)) (told string, stopped error) {
		ctx, stop := context.WithCancelCause(t.Context())
		said := make(chan string, 1)
		w := &slowWatch{Progress: hub.TextProgress(io.Discard), most: most, stop: stop, tell: func(s string) { said <- s }}
		b := w.Start("m", 1<<30)
		feed(b)
		select {
		case told = <-said:
		case <-ctx.Done():
			stopped = context.Cause(ctx)
		}
		b.Done(nil)
		return told, stopped
	}
	slow := new(slowError)
	if _, err := watch(time.Second, func(b hub.Bar) { b.Set(1 << 29); b.Add(1000) }); !errors.As(err, &slow) || slow.left != 1<<29-1000 || slow.rate <= 0 {
		t.Errorf("slow: %v", err)
	}
	if _, err := watch(time.Second, func(b hub.Bar) {}); err == nil || !strings.Contains(err.Error(), "sends nothing of its 1.00 GiB") {
		t.Errorf("nothing: %v", err)
	}
	if told, err := watch(1000*time.Hour, func(b hub.Bar) { b.Add(1 << 20) }); err != nil || !strings.Contains(told, "1023.0 MiB to come at ") {
		t.Errorf("fast: %v, %q", err, told)
	}
	w := &slowWatch{Progress: hub.TextProgress(io.Discard)}
	for _, name := range []string{"unpacking m", "checking m"} { // the disk's time
		if _, watched := w.Start(name, 1<<30).(*watchedBar); watched {
			t.Errorf("%s: measured as if the network did it", name)
		}
	}
	if told, err := watch(0, func(b hub.Bar) { b.Add(1) }); err != nil || told == "" {
		t.Errorf("without a bound: %v, %q", err, told)
	}
}
