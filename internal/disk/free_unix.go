//go:build linux || darwin || freebsd

package disk

import "golang.org/x/sys/unix"

// Free returns the bytes that this user can still write below dir.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
