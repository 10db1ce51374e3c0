//go:build !linux

package arena

func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

func advise(_, _ []byte) {}

func release([]byte) error { return nil }

func huge() bool { return false }
