package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ridge/server"
)

// watchFlags are the flags of commands that look at a running server.
type watchFlags struct {
	url, key string
	json     bool
	client   http.Client
}

func (f *watchFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.url, "url", "", "address of the server (also RIDGE_URL; default http://127.0.0.1:8080)")
	fs.StringVar(&f.key, "api-key", "", "API key (also RIDGE_API_KEY)")
	fs.BoolVar(&f.json, "json", false, "print JSON")
}

// complete fills in what the environment says.
func (f *watchFlags) complete() {
	for _, d := range []struct {
		to        *string
		env, last string
	}{{&f.url, "RIDGE_URL", "http://127.0.0.1:8080"}, {&f.key, "RIDGE_API_KEY", ""}} {
		if *d.to == "" {
			*d.to = os.Getenv(d.env)
		}
		if *d.to == "" {
			*d.to = d.last
		}
	}
	if !strings.Contains(f.url, "://") {
		f.url = "http://" + f.url
	}
	f.url = strings.TrimSuffix(strings.TrimSuffix(f.url, "/"), "/v1")
	f.client.Timeout = 10 * time.Second
}

// look asks the server what it does.
func (f *watchFlags) look(ctx context.Context) (*server.Status, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/ridge/status", nil)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	if f.key != "" {
		req.Header.Set("Authorization", "Bearer "+f.key)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no server: %w", err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, fmt.Errorf("%s: the server wants an API key: give --api-key or set RIDGE_API_KEY", f.url)
	default:
		return nil, fmt.Errorf("%s: expected a ridge, found a server that answers %s", f.url, resp.Status)
	}
	st := new(server.Status)
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(st); err != nil {
		return nil, fmt.Errorf("%s: expected a ridge: %w", f.url, err)
	}
	return st, nil
}

func psCommand() *cobra.Command {
	var f watchFlags
	c := &cobra.Command{
		Use:   "ps",
		Short: "Show what a running server does",
		Long: `Show the models that a running server has loaded, their speeds, memory and caches,
and the sequences that run and wait. "ridge top" shows the same all the time.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.complete()
			st, err := f.look(c.Context())
			if err != nil {
				return err
			}
			if f.json {
				return writeJSON(c.OutOrStdout(), st)
			}
			// Speeds are differences.
			var before *server.Status
			if busy(st) {
				select {
				case <-time.After(psWindow):
				case <-c.Context().Done():
					return c.Context().Err()
				}
				if next, err := f.look(c.Context()); err == nil {
					before, st = st, next
				}
			}
			return printLines(c.OutOrStdout(), statusLines(st, before, f.url, 0, 0))
		},
	}
	f.add(c)
	return c
}

// psWindow is the time over which ps measures speeds.
const psWindow = 500 * time.Millisecond

func busy(st *server.Status) bool {
	for i := range st.Models {
		if st.Models[i].Running+st.Models[i].Waiting > 0 {
			return true
		}
	}
	return false
}

func topCommand() *cobra.Command {
	var f watchFlags
	var every time.Duration
	var count int
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch a running server",
		Long: `Watch a running server: speeds, memory and caches of its models, and the sequences
that run and wait. q or Ctrl-C ends it. Where there is no terminal, a snapshot is
printed at each interval.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.complete()
			if every < 100*time.Millisecond {
				return fmt.Errorf("--interval: expected at least 100ms, found %v", every)
			}
			if out, ok := c.OutOrStdout().(*os.File); ok && !f.json && term.IsTerminal(int(out.Fd())) {
				return f.screen(c.Context(), out, every, count)
			}
			return f.snapshots(c.Context(), c.OutOrStdout(), every, count)
		},
	}
	f.add(c)
	c.Flags().DurationVarP(&every, "interval", "i", time.Second, "time between two looks")
	c.Flags().IntVarP(&count, "count", "n", 0, "number of looks (default: until it is ended)")
	return c
}

// snapshots prints what the server does, again and again.
func (f *watchFlags) snapshots(ctx context.Context, w io.Writer, every time.Duration, count int) error {
	var before *server.Status
	for i := 0; count == 0 || i < count; i++ {
		if i > 0 {
			select {
			case <-time.After(every):
			case <-ctx.Done():
				return nil
			}
		}
		st, err := f.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if f.json {
			err = json.NewEncoder(w).Encode(st)
		} else {
			err = printLines(w, append(statusLines(st, before, f.url, 0, 0), ""))
		}
		if err != nil {
			return err
		}
		before = st
	}
	return nil
}

func printLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
