//go:build !linux

package pool

import "errors"

// affinity is a set of processors that a thread may run on: not on this system.
type affinity struct{}

func affinityOf([]int) affinity { return affinity{} }

func (*affinity) apply() error { return errors.ErrUnsupported }

func (*affinity) read() {}

// allowedCPUs returns the processors that this process may use: nil, since the system does not tell.
func allowedCPUs() []int { return nil }
