//go:build !linux

package mmap

import "os"

func mapHuge(*os.File, int) ([]byte, room, bool) { return nil, nil, false }

func dropCache(*os.File, int64, int64) {}

func unmapRoom(room) error { return nil }

func fetch([]byte) {}

func hugeBytes([]byte) int64 { return 0 }
