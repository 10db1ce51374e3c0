// Command ridge runs language models on ordinary processors.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ridge/internal/cpu"
	"ridge/measure/machine"
)

func main() { os.Exit(run()) }

// exitInterrupted is what shells expect of a program that Ctrl-C ended.
const exitInterrupted = 130

// run is main with an exit status, so that tests can call it.
func run() int {
	// Weights and caches lie outside the heap: what is left is small, and
	// collecting it rarely keeps the workers undisturbed.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := cpu.Check()
	if err == nil {
		err = rootCommand().ExecuteContext(ctx)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "ridge: interrupted")
		return exitInterrupted
	}
	printError(os.Stderr, err)
	return 1
}

// printError writes an error in a line that begins with the program's name, once.
func printError(w io.Writer, err error) {
	fmt.Fprintln(w, "ridge:", strings.TrimPrefix(err.Error(), "ridge: "))
}

// explainArgs makes commands that got too few or too many arguments say what they
// want.
func explainArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if check(c, args) == nil {
				return nil
			}
			return fmt.Errorf("expected %q, found %d arguments; see %s --help", strings.TrimSuffix(c.UseLine(), " [flags]"), len(args), c.CommandPath())
		}
	}
	for _, sub := range c.Commands() {
		explainArgs(sub)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "ridge",
		Short: "Run language models on ordinary processors",
		Long: `ridge runs open language models (GGUF, safetensors) on ordinary processors,
at the speed that the memory allows, as one program without dependencies.`,
		Example: `  ridge run smollm2 "Why is the sky blue?"
  ridge pull gemma3:270m
  ridge show qwen2.5-coder:0.5b`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(
		&cobra.Group{ID: "use", Title: "Use models:"},
		&cobra.Group{ID: "keep", Title: "Keep models:"},
		&cobra.Group{ID: "look", Title: "Look inside:"},
	)
	root.AddCommand(
		inGroup("use", runCommand(), serveCommand(), agentCommand(), psCommand(), topCommand(), evalCommand(), embedCommand(), searchCommand(), tokenizeCommand())...)
	root.AddCommand(
		inGroup("keep", pullCommand(), listCommand(), showCommand(), rmCommand(), convertCommand(), mergeCommand(), quantizeCommand(), calibrateCommand(), specCommand())...)
	root.AddCommand(
		inGroup("look", inspectCommand(), doctorCommand(), benchCommand(), labCommand(), planCommand(), techniquesCommand())...)
	explainArgs(root)
	return root
}

func inGroup(id string, cs ...*cobra.Command) []*cobra.Command {
	for _, c := range cs {
		c.GroupID = id
	}
	return cs
}

// version names the build.
func version() string { return machine.Build() }
