package hub

import (
	"bufio"
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// pypiScheme starts references to package indexes. It is also the name of the
// index that pip uses when it is told nothing.
const (
	pypiScheme   = "pypi"
	defaultIndex = "https://" + pypiScheme + ".org/simple"
)

// pipConfig holds pip's settings that say where packages come from: from
// PIP_* variables, else the configuration files that pip reads.
type pipConfig struct {
	indexes   []string // simple API roots, in order; empty with no-index
	findLinks []string // folders, files and pages with wheels
	cert      string
	proxy     *url.URL
	timeout   time.Duration
	trusted   map[string]bool
}

func readPipConfig() (pipConfig, error) {
	conf := map[string]string{}
	for _, f := range pipConfigFiles() {
		b, err := readSmall(f, 1<<20)
		if err != nil {
			continue // pip, too, goes on without a file that it cannot read
		}
		parsePipFile(b, conf)
	}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if rest, ok := strings.CutPrefix(name, "PIP_"); ok && value != "" {
			conf[strings.ReplaceAll(strings.ToLower(rest), "_", "-")] = value
		}
	}
	return newPipConfig(conf)
}

func newPipConfig(conf map[string]string) (pipConfig, error) {
	c := pipConfig{findLinks: strings.Fields(conf["find-links"]), cert: conf["cert"], trusted: map[string]bool{}}
	if !isTrue(conf["no-index"]) {
		index := conf["index-url"]
		if index == "" {
			index = defaultIndex
		}
		c.indexes = append([]string{index}, strings.Fields(conf["extra-index-url"])...)
	}
	for _, h := range strings.Fields(conf["trusted-host"]) {
		c.trusted[strings.ToLower(h)] = true
	}
	for _, name := range []string{"timeout", "default-timeout"} {
		if s, err := strconv.ParseFloat(conf[name], 64); err == nil && s > 0 && s < 86400 {
			c.timeout = time.Duration(s * float64(time.Second))
		}
	}
	if p := conf["proxy"]; p != "" {
		if !strings.Contains(p, "://") {
			p = "http://" + p
		}
		u, err := url.Parse(p)
		if err != nil {
			return c, fmt.Errorf("hub: pip's proxy setting: not a URL")
		}
		c.proxy = u
	}
	return c, nil
}

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on", "y", "t":
		return true
	}
	return false
}

// parsePipFile adds the settings of an ini file: those of [global], and those
// of [install] and [download], which count for more.
func parsePipFile(b []byte, conf map[string]string) {
	sections := map[string]map[string]string{}
	section, key := "", ""
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := strings.TrimRight(sc.Text(), " \t\r")
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case trimmed[0] == '[' && trimmed[len(trimmed)-1] == ']':
			section, key = strings.ToLower(trimmed[1:len(trimmed)-1]), ""
		case line[0] == ' ' || line[0] == '\t': // the value goes on
			if key != "" {
				sections[section][key] = strings.TrimSpace(sections[section][key] + "\n" + trimmed)
			}
		default:
			i := strings.IndexAny(trimmed, "=:")
			if i < 0 {
				continue
			}
			key = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(trimmed[:i])), "_", "-")
			if sections[section] == nil {
				sections[section] = map[string]string{}
			}
			sections[section][key] = strings.TrimSpace(trimmed[i+1:])
		}
	}
	for _, s := range []string{"global", "install", "download"} {
		for k, v := range sections[s] {
			conf[k] = v
		}
	}
}

// pipConfigFiles lists the files that pip reads, the least important first.
func pipConfigFiles() []string {
	var files []string
	home := homeDir()
	switch runtime.GOOS {
	case "windows":
		if d := os.Getenv("ProgramData"); d != "" {
			files = append(files, filepath.Join(d, "pip", "pip.ini"))
		}
		files = append(files, filepath.Join(home, "pip", "pip.ini"))
		if d := os.Getenv("APPDATA"); d != "" {
			files = append(files, filepath.Join(d, "pip", "pip.ini"))
		}
	default:
		dirs := os.Getenv("XDG_CONFIG_DIRS")
		if dirs == "" {
			dirs = "/etc/xdg"
		}
		all := filepath.SplitList(dirs)
		for i := len(all) - 1; i >= 0; i-- {
			files = append(files, filepath.Join(all[i], "pip", "pip.conf"))
		}
		files = append(files, "/etc/pip.conf", filepath.Join(home, ".pip", "pip.conf"))
		config := os.Getenv("XDG_CONFIG_HOME")
		if config == "" {
			config = filepath.Join(home, ".config")
		}
		if runtime.GOOS == "darwin" {
			files = append(files, "/Library/Application Support/pip/pip.conf", filepath.Join(home, "Library", "Application Support", "pip", "pip.conf"))
		}
		files = append(files, filepath.Join(config, "pip", "pip.conf"))
	}
	if env := os.Getenv("VIRTUAL_ENV"); env != "" {
		files = append(files, filepath.Join(env, "pip.conf"))
	}
	if f := os.Getenv("PIP_CONFIG_FILE"); f == os.DevNull {
		return nil
	} else if f != "" {
		files = append(files, f)
	}
	return files
}
