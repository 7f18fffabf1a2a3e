// Command tae-node runs and administers one node of a threshold encryption cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/internal/exit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root().ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tae-node:", err)
	}
	stop()
	os.Exit(exit.Code(err))
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "tae-node",
		Short: "Run and administer one node of a threshold encryption cluster",
		Long: `Run and administer one node of a threshold encryption cluster.

Every command works on a node's directory (--dir). A running node is administered
over a Unix socket in that directory, never over the network.

Exit codes: 0 ok, 1 other, 2 usage, 3 input or output, 4 configuration,
13 unknown keyset, 130 interrupted.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.With(exit.Usage, err) })
	c.AddCommand(initCommand(), runCommand(), keysetCommand(), statusCommand(), configCommand(), devCommand(), demoCommand(), versionCommand())
	return c
}

// noArgs makes stray arguments a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	return exit.With(exit.Usage, cobra.NoArgs(cmd, args))
}

func oneArg(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return exit.With(exit.Usage, fmt.Errorf("give exactly one %s", what))
		}
		return nil
	}
}

// dirFlag adds --dir, which every command needs.
func dirFlag(c *cobra.Command, dir *string) *cobra.Command {
	c.Flags().StringVar(dir, "dir", "", "the node's directory (required)")
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *dir == "" {
			return exit.With(exit.Usage, errors.New("--dir is required"))
		}
		return run(cmd, args)
	}
	return c
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the program's version", Args: noArgs, Run: func(c *cobra.Command, _ []string) {
		fmt.Fprintln(c.OutOrStdout(), "tae-node", exit.Software())
	}}
}
