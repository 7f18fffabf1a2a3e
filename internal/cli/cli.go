// Package cli holds what the two commands have in common.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/internal/exit"
)

// Main runs a command until it ends or a signal comes, and exits with its code.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Group(root).ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
		if ctx.Err() != nil {
			err = context.Canceled
		}
	}
	stop()
	os.Exit(exit.Code(err))
}

// Group makes a command that only holds others print its help, and an unknown
// command under it a usage error.
func Group(c *cobra.Command) *cobra.Command {
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.With(exit.Usage, err) })
	c.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return exit.With(exit.Usage, fmt.Errorf("unknown command %q for %q; see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath()))
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return c
}

// NoArgs makes stray arguments a usage error.
func NoArgs(cmd *cobra.Command, args []string) error {
	return exit.With(exit.Usage, cobra.NoArgs(cmd, args))
}

// OneArg wants exactly one argument.
func OneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return exit.With(exit.Usage, errors.New("give exactly one "+what))
		}
		return nil
	}
}

// PrintJSON writes v for scripts.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Software is the program's version as the build records it.
func Software() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return version + " " + s.Value[:12]
		}
	}
	return version
}

// VersionCommand prints the program's version.
func VersionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the program's version", Args: NoArgs, Run: func(c *cobra.Command, _ []string) {
		fmt.Fprintln(c.OutOrStdout(), c.Root().Name(), Software())
	}}
}
