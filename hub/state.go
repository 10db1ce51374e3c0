package hub

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Files that an interrupted download leaves beside the place of its result.
const (
	incompleteSuffix = ".incomplete"
	stateSuffix      = ".incomplete.json"
)

// Segments are the unit of parallel requests.
var (
	minSegment  int64 = 8 << 20
	maxSegments int64 = 1024
)

// fetchState is the record beside an .incomplete file of which bytes are in it.
type fetchState struct {
	Version int     `json:"version"`
	URL     string  `json:"url"`
	Off     int64   `json:"offset,omitempty"` // where the bytes start in the remote object
	Size    int64   `json:"size"`             // -1: not known yet
	SHA256  string  `json:"sha256,omitempty"` // expected
	ETag    string  `json:"etag,omitempty"`
	Segment int64   `json:"segment"`
	Have    []int64 `json:"have"`          // bytes present at the start of each segment
	Sum     string  `json:"sum,omitempty"` // sha256 found, once complete and checked
}

func newState(obj object) *fetchState {
	st := &fetchState{Version: 1, URL: stripSecrets(obj.url), Off: obj.off, Size: -1, SHA256: obj.sha256}
	if obj.size >= 0 {
		st.setSize(obj.size)
	}
	return st
}

// setSize lays out the segments of an object of n bytes.
func (st *fetchState) setSize(n int64) {
	st.Size = n
	st.Segment = max(minSegment, (n+maxSegments-1)/maxSegments)
	st.Have = make([]int64, (n+st.Segment-1)/st.Segment)
}

// segmentLen is the length of segment i.
func (st *fetchState) segmentLen(i int) int64 {
	return min(st.Segment, st.Size-int64(i)*st.Segment)
}

// present counts the bytes there.
func (st *fetchState) present() int64 {
	var n int64
	for _, h := range st.Have {
		n += h
	}
	return n
}

func (st *fetchState) complete() bool { return st.Size >= 0 && st.present() == st.Size }

// usable tells whether the bytes on disk are a beginning of obj. The same
// content from another address is, if both are known by their sha256.
func (st *fetchState) usable(obj object, fileSize int64) bool {
	if st.Version != 1 || st.Size < 0 || st.Segment < 1 || st.Off != obj.off && st.SHA256 == "" {
		return false
	}
	if obj.size >= 0 && st.Size != obj.size {
		return false
	}
	if st.SHA256 != obj.sha256 || (obj.sha256 == "" && st.URL != stripSecrets(obj.url)) {
		return false
	}
	if !obj.checked() && st.ETag == "" && st.Sum == "" {
		return false // nothing would show that the file at the address has changed
	}
	if int64(len(st.Have)) != (st.Size+st.Segment-1)/st.Segment {
		return false
	}
	for i, h := range st.Have {
		if h < 0 || h > st.segmentLen(i) || (h > 0 && int64(i)*st.Segment+h > fileSize) {
			return false
		}
	}
	return true
}

// loadState reads the state beside path, nil if there is none to go on from.
func loadState(path string, obj object) *fetchState {
	fi, err := os.Stat(path + incompleteSuffix)
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	b, err := readSmall(path+stateSuffix, 1<<20)
	if err != nil {
		return nil
	}
	st := &fetchState{}
	if json.Unmarshal(b, st) != nil || !st.usable(obj, fi.Size()) {
		return nil
	}
	return st
}

func (st *fetchState) save(path string) error {
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return writeAtomic(path+stateSuffix, b)
}

// removePartial deletes what a download of path left.
func removePartial(path string) {
	os.Remove(path + stateSuffix)
	os.Remove(path + incompleteSuffix)
}

// writeAtomic writes a small file so that a reader sees the old or the new
// content, whatever happens in between.
func writeAtomic(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*"+incompleteSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// readSmall reads a file of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: larger than %s", path, FormatBytes(limit))
	}
	return b, nil
}
