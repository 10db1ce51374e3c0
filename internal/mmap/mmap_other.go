//go:build !unix

package mmap

import (
	"os"
	"time"
)

// mapFile refuses, so that Open reads the file.
func mapFile(*os.File, int) ([]byte, bool) { return nil, false }

// state is of no use where nothing is mapped.
type state struct{}

func stateOf(*os.File) (state, error) { return state{}, nil }

func idOf(*os.File) (string, time.Time) { return "", time.Time{} }

func unmap([]byte) error { return nil }

func advise([]byte, Advice) error { return nil }
