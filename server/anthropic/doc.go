// Package anthropic answers in Anthropic's API: messages, whole and as a stream,
// and the count of their tokens.
package anthropic
