package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"

	"ridge/internal/atomicfile"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/wire"
)

// storedFile is an uploaded file, or what a batch wrote.
type storedFile struct {
	ID       string `json:"id"`
	Object   string `json:"object"`
	Bytes    int64  `json:"bytes"`
	Created  int64  `json:"created_at"`
	Filename string `json:"filename"`
	Purpose  string `json:"purpose"`
	Status   string `json:"status"`
	Owner    string `json:"owner,omitempty"` // name of the key, not shown
}

// shown is a file without what clients need not see.
func (f storedFile) shown() storedFile {
	f.Owner = ""
	return f
}

// maxFiles bounds the files that are kept.
const maxFiles = 10000

var fileID = regexp.MustCompile(`^(file|batch)-[0-9a-f]{24}$`)

// path is where a thing of the given id is, with an extension. An id that is
// not of this server's making has none.
func (b *batches) path(id, ext string) (string, error) {
	if !fileID.MatchString(id) {
		return "", fault.NotFound("no file or batch has the id %q", id)
	}
	return filepath.Join(b.dir, id+ext), nil
}

// writeMeta replaces a description.
func (b *batches) writeMeta(id string, v any) error {
	path, err := b.path(id, ".json")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
}

// readMeta reads a description.
func (b *batches) readMeta(id string, v any) error {
	path, err := b.path(id, ".json")
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return fault.NotFound("no file or batch has the id %q", id)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// file is the description of a file that owner may see.
func (b *batches) file(id, owner string) (storedFile, error) {
	var f storedFile
	if !strings.HasPrefix(id, "file-") {
		return f, fault.NotFound("no file has the id %q", id)
	}
	if err := b.readMeta(id, &f); err != nil {
		return f, err
	}
	if f.Owner != owner {
		return f, fault.NotFound("no file has the id %q", id)
	}
	return f, nil
}

// list returns the ids of all files or batches.
func (b *batches) list(prefix string) ([]string, error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && strings.HasPrefix(id, prefix) && fileID.MatchString(id) {
			out = append(out, id)
		}
	}
	return out, nil
}

// store keeps what r holds as a file, whole or not at all.
func (b *batches) store(r io.Reader, name, purpose, owner string) (storedFile, error) {
	f := storedFile{ID: caller.NewID("file-"), Object: "file", Created: time.Now().Unix(), Filename: filepath.Base(name), Purpose: purpose, Status: "processed", Owner: owner}
	path, err := b.path(f.ID, ".data")
	if err != nil {
		return f, err
	}
	err = atomicfile.Write(path, func(w io.Writer) error {
		f.Bytes, err = io.Copy(w, r)
		return err
	})
	if err == nil {
		err = b.writeMeta(f.ID, &f)
	}
	if err != nil {
		_ = b.removeFile(f.ID) // a try; it is in the log
	}
	return f, err
}

// enabled is an error on servers without a place for files.
func (s *Server) enabled() error {
	if s.batches == nil {
		return fault.NotImplemented("this server keeps no files; start it with --data")
	}
	return nil
}

// postFile is POST /v1/files.
func (s *Server) postFile(w http.ResponseWriter, r *http.Request) error {
	if err := s.enabled(); err != nil {
		return err
	}
	f, err := s.upload(r)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, f.shown())
	return nil
}

func (s *Server) upload(r *http.Request) (storedFile, error) {
	var f storedFile
	if all, err := s.batches.list("file-"); err != nil || len(all) >= maxFiles {
		return f, errors.Join(err, fault.BadRequest("file", "expected room for another file, found %d, as many as may be", len(all)))
	}
	mr, err := r.MultipartReader()
	if err != nil {
		return f, fault.BadRequest("", "expected a form of parts (multipart/form-data): %v", err)
	}
	purpose := ""
	for {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f, bodyError(err)
		}
		switch part.FormName() {
		case "purpose":
			b, err := io.ReadAll(io.LimitReader(part, 100))
			if err != nil {
				return f, bodyError(err)
			}
			purpose = string(b)
		case "file":
			if f.ID != "" {
				return f, fault.BadRequest("file", "expected one file, found more")
			}
			if f, err = s.batches.store(part, part.FileName(), "", caller.Owner(r.Context())); err != nil {
				return f, bodyError(err)
			}
		}
	}
	switch {
	case f.ID == "":
		return f, fault.BadRequest("file", "expected a file, found none")
	case purpose != "batch":
		_ = s.batches.removeFile(f.ID) // it is in the log
		return f, fault.BadRequest("purpose", "expected batch, found %q", purpose)
	}
	f.Purpose = purpose
	if err := s.batches.writeMeta(f.ID, &f); err != nil {
		_ = s.batches.removeFile(f.ID) // it is in the log
		return f, err
	}
	return f, nil
}

// bodyError tells what is wrong with a body from what is wrong with the disk.
func bodyError(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return err
	}
	return wire.BodyError(err)
}

// removeFile removes a file, its description first: what is left without one is
// no file, and is removed at the next start.
func (b *batches) removeFile(id string) error {
	for _, ext := range []string{".json", ".data"} {
		path, err := b.path(id, ext)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			b.s.log.Error("a file cannot be removed", "file", id, "error", b.s.logged(err))
			return err
		}
	}
	return nil
}

// sweep removes content that has no description: of files whose upload or
// removal was cut off.
func (b *batches) sweep(entries []os.DirEntry) {
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	for name := range there {
		if id, ok := strings.CutSuffix(name, ".data"); ok && fileID.MatchString(id) && !there[id+".json"] {
			_ = b.removeFile(id) // it is in the log
		}
	}
}

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request) error {
	if err := s.enabled(); err != nil {
		return err
	}
	all, err := s.batches.list("file-")
	if err != nil {
		return err
	}
	out := []storedFile{}
	for _, id := range all {
		if f, err := s.batches.file(id, caller.Owner(r.Context())); err == nil {
			out = append(out, f.shown())
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Created > out[j].Created })
	wire.WriteJSON(w, http.StatusOK, map[string]any{"object": "list", "data": out, "has_more": false})
	return nil
}

func (s *Server) getFile(w http.ResponseWriter, r *http.Request) error {
	if err := s.enabled(); err != nil {
		return err
	}
	f, err := s.batches.file(r.PathValue("id"), caller.Owner(r.Context()))
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, f.shown())
	return nil
}

func (s *Server) fileContent(w http.ResponseWriter, r *http.Request) error {
	if err := s.enabled(); err != nil {
		return err
	}
	f, err := s.batches.file(r.PathValue("id"), caller.Owner(r.Context()))
	if err != nil {
		return err
	}
	path, err := s.batches.path(f.ID, ".data")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", f.ID+".jsonl"))
	http.ServeFile(w, r, path)
	return nil
}

func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request) error {
	if err := s.enabled(); err != nil {
		return err
	}
	f, err := s.batches.file(r.PathValue("id"), caller.Owner(r.Context()))
	if err != nil {
		return err
	}
	if err := s.batches.removeFile(f.ID); err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"id": f.ID, "object": "file", "deleted": true})
	return nil
}
