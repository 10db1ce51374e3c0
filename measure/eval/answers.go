package eval

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
)

//go:embed everyday.jsonl
var everyday []byte

// Fact is a question with an answer that a program can check. One of Accept,
// Pattern and Number says what is right.
type Fact struct {
	Topic    string `json:"topic"`
	Question string `json:"question"`

	// Accept are words or phrases of which one must be in an answer, whatever
	// its case, not as a part of a longer word or number.
	Accept []string `json:"accept,omitempty"`
	// Pattern is a regular expression that an answer must match.
	Pattern string `json:"pattern,omitempty"`
	// Number is the result: the last number of an answer that is not in the
	// question.
	Number string `json:"number,omitempty"`
	// Wrong are words and phrases that must not come before what is accepted, nor
	// after it behind "or", "however" and the like: an answer that names several
	// things is not right because one of them is. With Pattern their case counts.
	Wrong []string `json:"wrong,omitempty"`

	pattern *regexp.Regexp
}

// EverydayFacts returns a hundred questions of everyday knowledge: geography,
// arithmetic, history, language and common facts.
func EverydayFacts() []Fact {
	fs, err := ReadFacts(bytes.NewReader(everyday), "everyday.jsonl")
	if err != nil {
		panic(err) // a test reads them
	}
	return fs
}

// ReadFacts reads facts, one JSON object a line. Empty lines are left out. name
// is that of the file, for errors.
func ReadFacts(r io.Reader, name string) ([]Fact, error) {
	var out []Fact
	err := readLines(r, name, func(line []byte) error {
		var f Fact
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil {
			return err
		}
		if err := f.prepare(); err != nil {
			return err
		}
		out = append(out, f)
		return nil
	})
	return out, err
}

// prepare checks the fact and compiles its pattern.
func (f *Fact) prepare() error {
	kinds := 0
	for _, given := range []bool{len(f.Accept) > 0, f.Pattern != "", f.Number != ""} {
		if given {
			kinds++
		}
	}
	switch {
	case strings.TrimSpace(f.Question) == "":
		return errors.New("question: expected a text, found none")
	case kinds != 1:
		return fmt.Errorf("expected one of accept, pattern and number, found %d", kinds)
	case slices.Contains(f.Accept, "") || slices.Contains(f.Wrong, ""):
		return errors.New("accept, wrong: expected texts that are not empty")
	case f.Number != "" && !slices.Equal(numbers(f.Number), []string{f.Number}):
		return fmt.Errorf("number: expected digits, found %q", f.Number)
	}
	if f.Pattern != "" {
		p, err := regexp.Compile(f.Pattern)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
		f.pattern = p
	}
	return nil
}

// Right reports whether an answer is right.
func (f *Fact) Right(answer string) bool {
	if f.Number != "" {
		return f.rightNumber(answer)
	}
	at, low := -1, strings.ToLower(answer)
	if f.pattern != nil {
		low = answer
		if m := f.pattern.FindStringIndex(answer); m != nil {
			at = m[0]
		}
	}
	for _, a := range f.Accept {
		if i := indexWord(low, strings.ToLower(a)); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	for _, w := range f.Wrong {
		if f.pattern == nil {
			w = strings.ToLower(w)
		}
		if i := indexWord(low, w); i >= 0 && (i <= at || takenBack.MatchString(low[at:i])) {
			return false
		}
	}
	return true
}

// takenBack matches what stands between a right answer and a wrong one that
// replaces it or is offered beside it.
var takenBack = regexp.MustCompile(`(?i)\b(?:actually|however|instead|rather|or)\b`)

// rightNumber compares the result that an answer comes to.
func (f *Fact) rightNumber(answer string) bool {
	given := numbers(f.Question)
	found := slices.DeleteFunc(numbers(answer), func(n string) bool { return n != f.Number && slices.Contains(given, n) })
	if len(found) > 0 {
		return found[len(found)-1] == f.Number
	}
	i := slices.Index(smallNumbers, f.Number)
	return i >= 0 && indexWord(strings.ToLower(answer), numberWords[i]) >= 0
}

// Small numbers are often written as words.
var (
	smallNumbers = []string{"2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"}
	numberWords  = []string{"two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
)

var (
	numeral = regexp.MustCompile(`[-−]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?`)
	ordinal = regexp.MustCompile(`^(?:st|nd|rd|th)\b`)
)

// numbers returns the numbers in s as digits, without separators of thousands
// and zeros at the end of a fraction. Ordinals and digits inside words are none.
func numbers(s string) (out []string) {
	for _, m := range numeral.FindAllStringIndex(s, -1) {
		n := s[m[0]:m[1]]
		before := wordEnd(s[:m[0]]) && !strings.HasSuffix(s[:m[0]], ",") // lists are written as 2,4,6
		if digits := strings.TrimLeft(n, "-−"); digits != n && (before || strings.HasSuffix(s[:m[0]], ")")) {
			n, before = digits, false // a difference, or a hyphen
		}
		if before || ordinal.MatchString(s[m[1]:]) {
			continue
		}
		n = strings.ReplaceAll(strings.ReplaceAll(n, ",", ""), "−", "-")
		if strings.ContainsRune(n, '.') {
			n = strings.TrimRight(strings.TrimRight(n, "0"), ".")
		}
		out = append(out, n)
	}
	return out
}

// Answered is what a model said to a question.
type Answered struct {
	Topic    string `json:"topic"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
	Right    bool   `json:"right"`
}

// Score counts right answers.
type Score struct {
	Right     int `json:"right"`
	Questions int `json:"questions"`
}

// Answers is how well a model answers.
type Answers struct {
	Score
	// Low and High bound the share of right answers to such questions: Wilson's
	// interval for 95%.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Topics are the counts by topic.
	Topics map[string]Score `json:"topics"`
	// Answers are in the order of the questions.
	Answers []Answered `json:"answers"`
}

// Ask puts every question to a model, several at once, and counts. ask returns
// the answer to one question; progress, when not nil, is told how many are done.
func Ask(ctx context.Context, facts []Fact, ask func(ctx context.Context, question string) (string, error), progress func(done, total int)) (Answers, error) {
	r := Answers{Topics: map[string]Score{}, Answers: make([]Answered, len(facts))}
	if len(facts) == 0 {
		return r, errors.New("eval: questions: expected at least one, found none")
	}
	err := inOrder(ctx, len(facts), atOnce, func(ctx context.Context, i int) error {
		f := &facts[i]
		answer, err := ask(ctx, f.Question)
		if err != nil {
			return fmt.Errorf("eval: question %d: %w", i+1, err)
		}
		r.Answers[i] = Answered{Topic: f.Topic, Question: f.Question, Answer: answer, Right: f.Right(answer)}
		return nil
	}, func(i int) {
		topic := r.Topics[facts[i].Topic]
		topic.Questions++
		r.Questions++
		if r.Answers[i].Right {
			topic.Right++
			r.Right++
		}
		r.Topics[facts[i].Topic] = topic
		if progress != nil {
			progress(i+1, len(facts))
		}
	})
	r.Low, r.High = wilson(r.Right, r.Questions)
	return r, err
}

// wilson is the interval of E. B. Wilson (1927) for a share, at 95%.
func wilson(right, n int) (low, high float64) {
	const z = 1.959964
	if n == 0 {
		return 0, 1
	}
	p, m := float64(right)/float64(n), float64(n)
	mid := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return (mid - half) / (1 + z*z/m), (mid + half) / (1 + z*z/m)
}
