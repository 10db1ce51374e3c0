package eval

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestRight(t *testing.T) {
	for _, tc := range []struct {
		fact        Fact
		right, miss []string
	}{
		{
			Fact{Question: "What is 12 times 7?", Number: "84"},
			[]string{"84", "12 times 7 is 84.", "84 is the product of 12 and 7.", "12 × 7 = **84**", "10 × 7 = 70, 2 × 7 = 14, 70 + 14 = 84", "1. Multiply.\n2. The result is 84.0"},
			[]string{"", "184", "840", "8.4", "84.5", "-84", "It is −84", "84th", "12 times 7 is 72.", "84 or 72?", "eighty", "1,084", "x84", "84 = 12 + 72"},
		},
		{
			Fact{Question: "I have 10 apples and eat 3. How many are left?", Number: "7"},
			[]string{"You have 7 apples left.", "Seven apples are left.", "10 - 3 = 7", "10-3=7"},
			[]string{"You have 3 apples left.", "seventy", "13", "10 - 3 = 6"},
		},
		{
			Fact{Question: "Which number comes next: 2, 4, 6, 8?", Number: "10"},
			[]string{"10", "2,4,6,8,10", "2, 4, 6, 8, 10", "The next number is ten."},
			[]string{"2,4,6,8,12", "2, 4, 6, 8, 10, 12", "2010"},
		},
		{Fact{Question: "1000 × 4?", Number: "4000"}, []string{"4,000", "4000.00"}, []string{"4.000", "40,00"}},
		{
			Fact{Question: "Which city is the capital of Australia?", Accept: []string{"Canberra"}, Wrong: []string{"Sydney"}},
			[]string{"canberra", "It is Canberra, not Sydney.", "**Canberra**"},
			[]string{"Sydney", "Sydney or Canberra", "Canberra or Sydney", "Canberra. However, many say Sydney.", "It is Canberra, but it's actually Sydney.", "Canberrans live there", "preCanberra", "I do not know."},
		},
		{
			Fact{Question: "Plants take in?", Accept: []string{"carbon dioxide", "CO2"}, Wrong: []string{"oxygen"}},
			[]string{"Carbon dioxide (CO2), and give oxygen.", "co2"},
			[]string{"Oxygen and carbon dioxide", "CO21"},
		},
		{Fact{Question: "After D?", Pattern: `\bE\b`, Wrong: []string{"F"}}, []string{"E", "It is the letter E, then F."}, []string{"e.g. none", "F, then E", "EE"}},
		{Fact{Question: "Hours?", Accept: []string{"24"}}, []string{"24", "24 hours.", "24."}, []string{"24.5", "240", "1,240", "0.24"}},
	} {
		if err := tc.fact.prepare(); err != nil {
			t.Fatal(err)
		}
		for _, a := range tc.right {
			if !tc.fact.Right(a) {
				t.Errorf("%s %q is not taken for right", tc.fact.Question, a)
			}
		}
		for _, a := range tc.miss {
			if tc.fact.Right(a) {
				t.Errorf("%s %q is taken for right", tc.fact.Question, a)
			}
		}
	}
}

// No question is answered by what answers nothing, by the question itself, by
// the answers to others, or by a list of what is wrong before what is right.
func TestEverydayFacts(t *testing.T) {
	facts := EverydayFacts()
	if len(facts) != 100 {
		t.Fatalf("%d questions, want 100", len(facts))
	}
	seen := map[string]bool{}
	for i, f := range facts {
		if seen[f.Question] || f.Topic == "" {
			t.Errorf("question %d: %q: asked twice, or without a topic", i+1, f.Question)
		}
		seen[f.Question] = true
		if f.Number == "" && len(f.Wrong) < 2 {
			t.Errorf("%s: expected at least 2 wrong answers, found %d", f.Question, len(f.Wrong))
		}
		for _, a := range append(f.Accept, f.Number) {
			if a != "" && (!f.Right(a) || !f.Right("I think it is "+a+".")) {
				t.Errorf("%s %q is not taken for right", f.Question, a)
			}
		}
		for _, a := range []string{"", "I don't know.", f.Question, strings.Join(f.Wrong, ", "), strings.Join(slices.Concat(f.Wrong, f.Accept), " or ")} {
			if len(f.Wrong) > 0 && f.Right(a) {
				t.Errorf("%s %q is taken for right", f.Question, a)
			}
		}
		for _, g := range facts {
			a := g.Number
			if len(g.Accept) > 0 {
				a = g.Accept[0]
			}
			if a != "" && !slices.Contains(f.Accept, a) && a != f.Number && f.Right(a) {
				t.Errorf("%s the answer to %q is taken for right: %q", f.Question, g.Question, a)
			}
		}
	}
}

func TestReadFacts(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "at least one question",
		`{"question":"x"}`:                    "x.jsonl: line 1: expected one of accept, pattern and number, found 0",
		"\n" + `{"question":"","number":"1"}`: "line 2: question",
		`{"question":"x","number":"1","accept":["1"]}`: "found 2",
		`{"question":"x","number":"one"}`:              "expected digits",
		`{"question":"x","accept":[""]}`:               "not empty",
		`{"question":"x","pattern":"("}`:               "pattern:",
		`{"question":"x","acept":["y"]}`:               "acept",
	} {
		if _, err := ReadFacts(strings.NewReader(text), "x.jsonl"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}

func TestAsk(t *testing.T) {
	facts := EverydayFacts()
	calls := 0
	r, err := Ask(t.Context(), facts, func(_ context.Context, q string) (string, error) {
		if strings.Contains(q, "capital") {
			return "Paris, Tokyo, Canberra, Ottawa, Rome, Cairo, Berlin", nil
		}
		return "none", nil
	}, func(done, total int) { calls++ })
	geo := r.Topics["geography"]
	if err != nil || r.Questions != 100 || calls != 100 || r.Right != geo.Right || r.Right != 7 || geo.Questions != 20 || !r.Answers[0].Right || r.Answers[99].Answer != "none" {
		t.Errorf("%+v, %v, %d calls", r, err, calls)
	}
	if math.Abs(r.Low-0.0343) > 1e-3 || math.Abs(r.High-0.1375) > 1e-3 { // the formula in Python
		t.Errorf("interval %v to %v", r.Low, r.High)
	}
	if _, err := Ask(t.Context(), facts, func(context.Context, string) (string, error) { return "", errors.New("broken") }, nil); err == nil || !strings.Contains(err.Error(), "question 1: broken") {
		t.Errorf("error %v", err)
	}
}
