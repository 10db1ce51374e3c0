//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// startChat begins a chat with a tiny model, whose answers are short and mean
// nothing, on a terminal of 60 columns and 20 rows.
func startChat(t *testing.T, home string, flags ...string) *terminal {
	t.Helper()
	return startTallChat(t, 20, home, flags...)
}

// startTallChat is startChat on a terminal of so many rows.
func startTallChat(t *testing.T, rows int, home string, flags ...string) *terminal {
	t.Helper()
	p := startScreen(t, 60, rows, home, nil, append([]string{"run", tinyLlama, "-n", "3", "--raw"}, flags...)...)
	p.sees("/? for help")
	p.sees(">>>")
	return p
}

// asked are the questions of the chat, as they were given to the model.
func (p *terminal) asked(home string) (texts []string) {
	p.t.Helper()
	p.send("/save asked\r")
	p.sees("Saved ")
	files, _ := filepath.Glob(filepath.Join(home, "*", "chat", "asked.json"))
	more, _ := filepath.Glob(filepath.Join(home, "chat", "asked.json"))
	files = append(files, more...)
	if len(files) != 1 {
		p.t.Fatalf("the saved conversation: expected one file, found %q", files)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		p.t.Fatal(err)
	}
	var c conversation
	if err := json.Unmarshal(b, &c); err != nil {
		p.t.Fatal(err)
	}
	for _, m := range c.Messages {
		if m.Role == "user" {
			texts = append(texts, m.Content)
		}
	}
	return texts
}

func (p *terminal) wantAsked(home string, want ...string) {
	p.t.Helper()
	if got := p.asked(home); !slices.Equal(got, want) {
		p.t.Errorf("questions: expected %q, found %q\n%s", want, got, p.screen())
	}
}

// What is pasted is text: several lines are one message, tabs stay tabs, and
// nothing of it is a command.
func TestChatPaste(t *testing.T) {
	home := t.TempDir()
	p := startChat(t, home)
	code := "func f() {\n\tif x {\n\t\treturn \u2409\n\t}\n}"
	p.paste(code)
	p.sees("... }")
	p.send("\r")
	p.sees(">>> func f() {")
	p.paste("/bye")
	p.sees("A command has to be typed.")
	p.send("\r")
	p.paste("a\n/clear\n/bye\n")
	p.sees("... /bye")
	p.send("\r")
	p.paste(`"""`)
	p.send(" is a mark\r")
	// What follows a command that was typed is its argument.
	p.send("/set system ")
	p.paste("One.\nTwo.")
	p.send("\r/show system\r")
	p.see("the system message", func(s string) bool { return strings.Contains(s, "\nOne.\nTwo.\n") })
	p.wantAsked(home, code, "/bye", "a\n/clear\n/bye\n", `""" is a mark`)
	p.send("/bye\r")
	p.ends()
}

// A text too long for the editor is shown by its size, and given whole.
func TestChatPasteLong(t *testing.T) {
	home := t.TempDir()
	p := startChat(t, home, "--ctx", "2000")
	var long strings.Builder
	for i := range 200 {
		fmt.Fprintf(&long, "%d\t\n", i)
	}
	p.send("say ")
	p.paste(long.String())
	p.sees("say [text 1: 201 lines, ")
	p.send(" now\r")
	p.see("an empty message", func(s string) bool { return strings.HasSuffix(s, "\n>>>") })
	p.wantAsked(home, "say "+long.String()+" now")
	p.send("\x1b[A\x1b[A")
	p.see("the message", func(s string) bool { return strings.Contains(s, ">>> [text 1: 201 lines, ") })
	p.send("\x03/bye\r")
	p.ends()
}

// A message has several lines when the person says so.
func TestChatLines(t *testing.T) {
	home := t.TempDir()
	p := startChat(t, home)
	p.send("one\x1b\rthree") // Alt-Enter
	p.sees("... three")
	p.send("\x1b[A\x05\x1b\rtwo") // up, to the end
	p.see("three lines", func(s string) bool { return strings.HasSuffix(s, ">>> one\n... two\n... three") })
	p.send("\r")
	p.send("\"\"\"\ra\r/bye\r\"\"\"\r")
	p.sees(`... """`)
	p.wantAsked(home, "one\ntwo\nthree", "\na\n/bye\n")
	p.send("/bye\r")
	p.ends()
}

// Tab completes commands and is a tab elsewhere.
func TestChatTab(t *testing.T) {
	home := t.TempDir()
	p := startChat(t, home)
	p.send("/set par\ttemp\t")
	p.sees(">>> /set parameter temperature")
	p.send("0.5\r/show p\t\r")
	p.see("the parameters", func(s string) bool { return strings.Contains(s, "temperature        0.5") })
	p.send("/s\t")
	p.sees("/set  /show  /save")
	p.send("\x03/nosuch\t")
	p.sees("No command begins like this")
	p.send("\x03a\tb\r")
	p.wantAsked(home, "a\tb")
	p.send("/bye\r")
	p.ends()
}

// /set refuses a bad value when it is set.
func TestChatSetRefuses(t *testing.T) {
	p := startTallChat(t, 40, t.TempDir()) // all that can be set is on the screen
	for _, c := range []struct{ set, says string }{
		{"top_p 2", "\nridge: top_p: expected a number in [0, 1], found 2"},
		{"temperature -1", "temperature: expected 0 or a positive number, found -1"},
		{"min_p nan", "min_p: expected a number in [0, 1], found NaN"},
		{"repeat_last_n -2", "expected -1 (all)"},
		{"num_predict -5", "num_predict: expected"},
		{"num_ctx 4096", "--ctx"},
	} {
		p.send("/set parameter " + c.set + "\r")
		p.see(c.says, func(s string) bool {
			return strings.Contains(s, c.says) || strings.Contains(strings.ReplaceAll(s, "\n", " "), c.says)
		})
	}
	p.send(strings.Repeat("again ", 100) + "\r")
	p.sees("\nridge: prompt: expected at most")
	p.send("/set top_p 0.9\r/show parameters\r")
	p.see("what is set", func(s string) bool {
		return strings.Contains(s, "top_p              0.9") && strings.Contains(s, "min_p              0\n")
	})
	p.send("/bye\r")
	p.ends()
}

// Messages are found again, in other sessions too.
func TestChatHistory(t *testing.T) {
	home := t.TempDir()
	p := startChat(t, home)
	p.send("first\rsecond\x1b\rline\r")
	p.paste("/bye")
	p.send("\r/set verbose\r/bye\r")
	p.ends()

	p = startChat(t, home)
	p.send("draft\x1b[A")
	p.sees(">>> /bye")
	p.send("\x1b[A\x1b[A")
	p.see("the pasted text", func(s string) bool { return strings.HasSuffix(s, ">>>  /bye") })
	p.send("\r") // text again
	p.sees("\n>>>  /bye\n")
	p.send("sec\x12") // Ctrl-R
	p.see("the message of two lines", func(s string) bool { return strings.HasSuffix(s, ">>> second\n... line") })
	p.send("\r")
	p.send("typed\x1b[A\x1b[B")
	p.see("what was typed before", func(s string) bool { return strings.HasSuffix(s, ">>> typed") })
	p.send("\x15") // Ctrl-U
	p.wantAsked(home, " /bye", "second\nline")
	p.send("/bye\r")
	p.ends()
}

// The editor and the answers follow the size of the terminal.
func TestChatResize(t *testing.T) {
	home := t.TempDir()
	p := startChat(t, home)
	p.send("/set system " + strings.Repeat("word ", 14) + "end\r")
	p.send("/show system\r")
	p.see("a system message wrapped between words", func(s string) bool {
		for _, line := range strings.Split(s, "\n") {
			if strings.HasPrefix(line, "word") && len(line) > 60 {
				return false
			}
		}
		return strings.Contains(s, "word end")
	})
	p.send(strings.Repeat("abcd ", 8) + "efgh")
	p.sees("abcd efgh")
	p.mu.Lock()
	p.vt.Resize(30, 20)
	p.mu.Unlock()
	if err := pty.Setsize(p.f, &pty.Winsize{Rows: 20, Cols: 30}); err != nil {
		t.Fatal(err)
	}
	p.see("the message in lines of 30 columns", func(s string) bool {
		return strings.HasSuffix(s, "... abcd abcd abcd efgh")
	})
	p.send("\r")
	p.wantAsked(home, strings.Repeat("abcd ", 8)+"efgh")
	p.send("/bye\r")
	p.ends()
}

// Characters of two columns, and of several code points, are edited as what they
// are.
func TestChatWide(t *testing.T) {
	home := t.TempDir()
	p := startChat(t, home)
	p.send("日本語x\x1b[D\x1b[D")
	p.see("the cursor before the last wide character", func(s string) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return strings.HasSuffix(s, ">>> 日本語x") && p.vt.CursorPosition().X == len(">>> ")+4
	})
	p.send("é\x7fé한\r")
	p.wantAsked(home, "日本é한語x")
	p.send("/bye\r")
	p.ends()
}

// Ctrl-C stops an answer, what was entered meanwhile waits, and Ctrl-D leaves.
func TestChatKeys(t *testing.T) {
	home := t.TempDir()
	p := startChat(t, home, "--ref", "--ignore-eos", "-n", "100000", "--ctx", "128000")
	p.send("one\r")
	p.flows(3000)
	p.paste("two\n/bye")
	p.send("\r")
	p.sees("(waits)")
	p.send("draft\x03")
	p.sees("(stopped)")
	p.sees("1 waiting messages are dropped")
	p.send("\x03") // the draft
	p.see("an empty message", func(s string) bool { return strings.HasSuffix(s, "\n>>>") })
	p.send("\x03")
	p.sees("Ctrl-D or /bye leaves.")
	p.expect("leaves.")
	p.send("three\r")
	p.expect(">>> three")
	p.flows(3000)
	if err := p.cmd.Process.Signal(unix.SIGINT); err != nil { // as Ctrl-C
		t.Fatal(err)
	}
	p.see("the end of the second answer", func(s string) bool { return strings.HasSuffix(s, "(stopped)\n\n>>>") })
	p.send("ab\x1b[D\x1b[D\x04") // deletes where there is something
	p.see("one character", func(s string) bool { return strings.HasSuffix(s, ">>> b") })
	p.send("\x03\x04")
	p.ends()
}

// Where a terminal cannot be edited on, lines are read.
func TestChatPlain(t *testing.T) {
	home := t.TempDir()
	p := startTerminalWith(t, []string{"RIDGE_OFFLINE=1", "TERM=dumb", "HOME=" + home, "XDG_CACHE_HOME=" + home}, "run", tinyLlama, "-n", "3", "--raw")
	p.expect("/? for help")
	p.expect(">>> ")
	p.send("\"\"\"a\n")
	p.expect("... ")
	p.send("b\"\"\"\n")
	p.expect(">>> ")
	p.send("\x03")
	p.expect("Ctrl-D or /bye leaves.")
	p.send("/set verbose\nab\n")
	p.expect("tok/s")
	p.send("\x04")
	p.ends()
	if strings.Contains(p.out.String(), "\x1b[") {
		t.Error("escape sequences on a terminal that has none")
	}
}

// A full context is said and does not end the conversation: the oldest turns are
// dropped if the person wants it.
func TestChatOverflow(t *testing.T) {
	p := startScreen(t, 100, 40, t.TempDir(), nil, "run", tinyLlama, "-n", "20", "--ignore-eos", "--ctx", "400", "--system", "Be brief.")
	p.sees(">>>")
	idle := func() {
		p.t.Helper()
		p.see("the end of the answer", func(s string) bool { return strings.HasSuffix(s, "\n\n>>>") })
	}
	says := func(what string) {
		p.t.Helper()
		p.see(what, func(s string) bool { return strings.Contains(strings.ReplaceAll(s, "\n", " "), what) })
	}
	full := func() bool { return strings.Contains(p.screen(), "with this message, the context has 400.") }
	for i := 0; i < 20 && !full(); i++ {
		p.send(strings.Repeat("again ", 5) + "\r")
		p.expect(">>> again")
		idle()
	}
	says("with this message, the context has 400. /set overflow shift drops the oldest turns from now on, /clear forgets the conversation, --ctx opens a larger context")
	p.send("/set overflow none\r")
	says(`expected stop or shift, found "none"`)
	p.send("/set overflow shift\ragain\r")
	says("oldest turn")
	says("dropped: ")
	idle()
	p.send(strings.Repeat("again ", 100) + "\r")
	says("the message alone takes ")
	p.send("/show parameters\r")
	says("overflow           shift")
	p.send("/bye\r")
	p.ends()
}

// An answer that only repeats itself is ended, and that is said.
func TestRunEndsLoops(t *testing.T) {
	ask := func(flags ...string) string {
		c := exec.Command("ridge", append([]string{"run", tinyLlama, "a", "--raw", "--ctx", "700", "--logit-bias", "10=1000"}, flags...)...)
		c.Env = append(os.Environ(), "RIDGE_OFFLINE=1", "HOME="+t.TempDir())
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if out := ask(); !strings.Contains(out, "only repeated itself") || len(out) > 3000 {
		t.Errorf("a loop is not ended:\n%s", out)
	}
	if out := ask("--end-loops=false"); strings.Contains(out, "only repeated itself") || !strings.Contains(out, "the context of 700 tokens is full") {
		t.Errorf("a loop is ended that may go on:\n%s", out)
	}
	if out := ask("--ignore-eos"); strings.Contains(out, "only repeated itself") {
		t.Errorf("a loop is ended for who wants all tokens:\n%s", out)
	}
}
