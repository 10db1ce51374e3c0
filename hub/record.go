package hub

import (
	"errors"
	"time"
)

// saveSometimes records the progress every saveEvery.
func (d *download) saveSometimes() {
	if time.Since(d.saved) >= saveEvery {
		_ = d.record() // the download itself can go on without
	}
}

// record writes down what has arrived. Without a checksum at the end the data
// must be on disk before the record that says so.
func (d *download) record() error {
	if d.st.Size < 0 {
		return errors.New("the size is not known yet")
	}
	if !d.obj.checked() {
		if err := d.f.Sync(); err != nil {
			return err
		}
	}
	d.saved = time.Now()
	return d.st.save(d.path)
}

// recordRoom is more than a record and its copy take on a disk.
const recordRoom = 64 << 10

// recordLast writes down what has arrived when nothing more will. On a full disk
// it makes room by giving up the end of the file, so that the rest counts.
func (d *download) recordLast() error {
	err := d.record()
	if err == nil || d.st.Size < 0 {
		return err
	}
	last := len(d.st.Have) - 1
	for last > 0 && d.st.Have[last] == 0 {
		last--
	}
	d.st.Have[last] = max(0, d.st.Have[last]-recordRoom)
	if err := d.f.Truncate(int64(last)*d.st.Segment + d.st.Have[last]); err != nil {
		return err
	}
	return d.record()
}
