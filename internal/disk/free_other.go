//go:build !linux && !darwin && !freebsd && !windows

package disk

import "errors"

// Free is not known on this system; callers then do not check.
func Free(string) (int64, error) { return 0, errors.ErrUnsupported }
