//go:build !linux && !darwin && !freebsd && !windows

package hub

import "errors"

// diskFree is not known on this system; callers then do not check.
func diskFree(string) (int64, error) { return 0, errors.ErrUnsupported }
