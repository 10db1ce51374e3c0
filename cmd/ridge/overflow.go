package main

import (
	"fmt"

	"ridge"
	"ridge/text/chat"
)

// What a chat does when its context is full.
const (
	overflowStop  = "stop"  // say so
	overflowShift = "shift" // drop the oldest turns
)

func checkOverflow(v string) error {
	if v != overflowStop && v != overflowShift {
		return fmt.Errorf("expected %s or %s, found %q", overflowStop, overflowShift, v)
	}
	return nil
}

// full reports whether the last answer ended since the context was full.
func (s *session) full() bool {
	st := s.g.Stats
	return st.Finish == ridge.FinishLength && (s.g.MaxTokens == 0 || st.Tokens < s.g.MaxTokens)
}

// remedy is what can be done about a full context.
func (s *session) remedy() string {
	switch {
	case s.o.raw || !s.chatting:
		return "; --ctx opens a larger one"
	case s.o.overflow == overflowShift:
		return "; the oldest turns will be dropped"
	}
	return ". /set overflow shift drops the oldest turns from now on, /clear forgets the conversation, --ctx opens a larger context"
}

// answerRoom is the share of the context that is left free for an answer.
const answerRoom = 4

// makeRoom drops the oldest turns of a conversation that does not fit with its next
// prompt, if it may; else the error says what is full. What is dropped stays in what
// /save keeps.
func (s *session) makeRoom(prompt string) error {
	if s.o.raw || !s.chatting {
		return nil // the engine says it
	}
	need, err := s.length(prompt, s.dropped)
	if err != nil {
		return err
	}
	context := s.m.Context()
	if s.o.overflow == overflowStop {
		if need > context {
			return s.overflowError(need, prompt)
		}
		return nil
	}
	room := context / answerRoom
	if s.g.MaxTokens > 0 {
		room = min(room, s.g.MaxTokens)
	}
	before, drop := need, s.dropped
	for need > context-room && drop < len(s.messages) {
		drop = nextTurn(s.messages, drop)
		if need, err = s.length(prompt, drop); err != nil {
			return err
		}
	}
	if need > context {
		return s.overflowError(need, prompt)
	}
	if drop > s.dropped {
		n := turns(s.messages[s.dropped:drop])
		s.dropped = drop
		what := "the oldest turn is"
		if n > 1 {
			what = fmt.Sprintf("the %d oldest turns are", n)
		}
		fmt.Fprintf(s.err, "ridge: %s dropped: %d tokens of %d were in use, %d are now\n", what, before, context, need)
	}
	return nil
}

// overflowError says what is full, the conversation or the message alone.
func (s *session) overflowError(need int, prompt string) error {
	context := s.m.Context()
	alone, err := s.length(prompt, len(s.messages))
	if err != nil {
		return err
	}
	if alone > context {
		return fmt.Errorf("the message alone takes %d tokens, the context has %d; a larger one is opened by --ctx", alone, context)
	}
	return fmt.Errorf("the conversation takes %d tokens with this message, the context has %d%s", need, context, s.remedy())
}

// length is the number of tokens of the conversation without its first messages.
func (s *session) length(prompt string, dropped int) (int, error) {
	ids, err := s.m.ChatTokens(chat.Input{Messages: s.conversation(prompt, dropped), AddGenerationPrompt: true})
	return len(ids), err
}

// conversation is what the model reads: all but the first messages, and a prompt.
func (s *session) conversation(prompt string, dropped int) (msgs []chat.Message) {
	if s.system != "" {
		msgs = append(msgs, chat.Message{Role: "system", Content: s.system})
	}
	return append(append(msgs, s.messages[dropped:]...), chat.Message{Role: "user", Content: prompt})
}

// nextTurn is where the turn after the one at i begins: with the next message of
// the user.
func nextTurn(messages []chat.Message, i int) int {
	for i++; i < len(messages) && messages[i].Role != "user"; i++ {
	}
	return min(i, len(messages))
}

// turns counts the messages of the user.
func turns(messages []chat.Message) (n int) {
	for i := range messages {
		if messages[i].Role == "user" {
			n++
		}
	}
	return n
}
