//go:build !amd64

package kernel

func orderTier() *[32]uint16 { return &inOrder }

func roundTier([]byte, []float32, *[32]uint16, int) int { return 0 }

func brainTier(*Packed, []float32, int, *Acts, int, int, int, int) bool { return false }
