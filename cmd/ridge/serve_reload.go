package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"ridge/server"
)

// servePrefix begins the environment variables of the flags.
const servePrefix = "RIDGE_SERVE_"

// givenFlags are the flags of the command line, before others are filled in.
func givenFlags(fs *pflag.FlagSet) map[string][]string {
	out := map[string][]string{}
	fs.Visit(func(f *pflag.Flag) {
		out[f.Name] = []string{f.Value.String()}
		if s, ok := f.Value.(pflag.SliceValue); ok {
			out[f.Name] = s.GetSlice()
		}
	})
	return out
}

// prepare fills in the flags that the command line does not give.
func (o *serveOptions) prepare(fs *pflag.FlagSet) (err error) {
	o.given, o.started = givenFlags(fs), map[string]string{}
	o.models, err = fillFlags(fs, servePrefix, o.config)
	fs.VisitAll(func(f *pflag.Flag) { o.started[f.Name] = f.Value.String() })
	return err
}

// hangups answers to SIGHUP until end is called: a server whose terminal was closed
// drains, which ends the context that is returned, others read their configuration
// again. None cuts what is under way.
func (o *serveOptions) hangups(ctx context.Context, args []string, shelf *serveShelf, s *server.Server, log *slog.Logger) (serving context.Context, end func()) {
	ctx, drain := context.WithCancel(ctx)
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-c:
			}
			if term.IsTerminal(int(os.Stdin.Fd())) {
				drain()
				return
			}
			if err := o.reload(ctx, args, shelf, s, log); err != nil {
				log.Error("the configuration cannot be used; all stays as it was", "error", err)
			}
		}
	}()
	return ctx, func() {
		drain()
		signal.Stop(c)
	}
}

// reloaded are the flags that are taken over while the server runs.
var reloaded = []string{"alias", "any-model-name", "log-level", "name", "template", "reasoning", "lora", "config"}

// reload reads the configuration again: models, what requests get, the log's level,
// and the keys. It names the flags that need a new start.
func (o *serveOptions) reload(ctx context.Context, args []string, shelf *serveShelf, s *server.Server, log *slog.Logger) error {
	var next serveOptions
	cmd := &cobra.Command{}
	next.add(cmd)
	fs := cmd.Flags()
	for name, values := range o.given {
		for _, v := range values {
			if err := fs.Set(name, v); err != nil {
				return err
			}
		}
	}
	var err error
	if next.models, err = fillFlags(fs, servePrefix, next.config); err != nil {
		return err
	}
	if len(args)+len(next.models) == 0 && !next.local && !next.pull {
		args = []string{defaultModel()}
	}
	if err := next.check(); err != nil {
		return err
	}
	if _, err := next.logger(os.Stderr); err != nil {
		return err
	}
	now, err := next.shelf(ctx, args)
	if err != nil {
		return err
	}
	cold := o.cold(fs)
	o.level.Set(next.level.Level())
	if err := o.served.Configure(now.adapters); err != nil {
		return err
	}
	shelf.take(now)
	s.Reload()
	if len(cold) > 0 {
		log.Warn("the configuration was read again; some flags need a new start", "flags", cold)
		return nil
	}
	log.Info("the configuration was read again")
	return nil
}

// cold are the flags that have other values than at the start, and are not taken
// over.
func (o *serveOptions) cold(fs *pflag.FlagSet) (names []string) {
	fs.VisitAll(func(f *pflag.Flag) {
		isDefault := slices.ContainsFunc(defaultNames, func(d [2]string) bool { return d[0] == f.Name })
		if old, ok := o.started[f.Name]; ok && old != f.Value.String() && !isDefault && !slices.Contains(reloaded, f.Name) {
			names = append(names, f.Name)
		}
	})
	return names
}
