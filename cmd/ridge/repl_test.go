//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"
)

// A chat as a person has it.
func TestChat(t *testing.T) {
	p := startTerminal(t, "run", tinyLlama, "-n", "5", "--raw")
	p.expect("/? for help")
	p.send("ab\r")
	p.expect(">>> ")
	p.send("/?\r")
	p.expect("/save NAME")
	p.send("/set temperature 0.7\r/set top_k x\r")
	p.expect("top_k: expected a whole number")
	p.send("/set mirostat 3\r/set samplers top_k;nope\r/set samplers top-k;temp\r")
	p.expect("mirostat: expected 0 (off), 1 or 2, found 3")
	p.expect(`found "nope"`)
	p.send("/show parameters\r")
	p.expect("0.7")
	p.expect("top_k;temperature")
	p.send("/set system \"Be brief.\"\r/show system\r")
	p.expect("Be brief.")
	p.send("/show\r")
	p.expect("architecture")
	p.send("/save one\r")
	p.expect("Saved 2 messages")
	p.send("/clear\r")
	p.expect("forgotten")
	p.send("/load one\r")
	p.expect("Took up 2 messages")
	p.send("/load ../one\r")
	p.expect("conversation name: expected")
	p.send("\"\"\"a\rb\"\"\"\r")
	p.expect(">>> ")
	p.send("/nosuch\r")
	p.expect("expected a command")
	p.send("/set verbose\rab\r")
	p.expect("tok/s")
	p.send("/bye\r")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// SIGTERM ends a chat that waits for a question.
func TestChatTerminated(t *testing.T) {
	p := startTerminal(t, "run", tinyLlama)
	p.expect("/? for help")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the program ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it did not end")
	}
}

// Ctrl-C stops an answer and not the program.
func TestChatInterrupt(t *testing.T) {
	// The reference code and a long answer leave time to interrupt.
	p := startTerminal(t, "run", tinyLlama, "--raw", "--ignore-eos", "--ref", "--ctx", "128000")
	p.expect("/? for help")
	p.send("ab\r")
	p.flows(1000) // the answer has begun
	p.send("\x03")
	p.expect("(stopped)")
	p.send("/bye\r")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}
