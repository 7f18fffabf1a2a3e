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
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/internal/exit"
)

// Main runs a command until it ends or a signal comes, and exits with its code. A
// command that has not ended patience after the first signal, because it waits for
// input that does not come, is ended after its cleanups; 0 means that it ends by
// itself. A second signal ends it at once.
func Main(root *cobra.Command, patience time.Duration) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c := &cleanups{}
	ctx = context.WithValue(ctx, cleanupKey{}, c)
	go func() {
		<-ctx.Done()
		stop() // the next signal is the system's
		if patience > 0 {
			time.Sleep(patience)
			c.run()
			os.Exit(exit.Interrupted)
		}
	}()
	Group(root)
	usageErrors(root)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
		if ctx.Err() != nil {
			err = context.Canceled
		}
	}
	os.Exit(exit.Code(err))
}

type cleanupKey struct{}

// cleanups are what must be undone when the process is ended from outside.
type cleanups struct {
	mu   sync.Mutex
	next int
	f    map[int]func()
}

func (c *cleanups) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.f {
		f()
	}
}

// OnInterrupt registers a cleanup for a command that a signal ends while it cannot end
// by itself. The returned function takes it back.
func OnInterrupt(ctx context.Context, f func()) (remove func()) {
	c, ok := ctx.Value(cleanupKey{}).(*cleanups)
	if !ok {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.f == nil {
		c.f = map[int]func(){}
	}
	id := c.next
	c.next++
	c.f[id] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.f, id)
	}
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

// usageErrors makes what cobra finds wrong with flags, after it has parsed them, usage
// errors of all commands below c.
func usageErrors(c *cobra.Command) {
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
	c.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return exit.With(exit.Usage, err)
		}
		return exit.With(exit.Usage, cmd.ValidateFlagGroups())
	}
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
