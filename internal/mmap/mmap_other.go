//go:build !unix

package mmap

import "os"

// mapFile refuses, so that Open reads the file.
func mapFile(*os.File, int) ([]byte, bool) { return nil, false }

func unmap([]byte) error { return nil }

func advise([]byte, Advice) error { return nil }
