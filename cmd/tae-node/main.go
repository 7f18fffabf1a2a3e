// Command tae-node runs and administers one node of a threshold encryption cluster.
package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/exit"
)

func main() { cli.Main(root(), 0) }

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "tae-node",
		Short: "Run and administer one node of a threshold encryption cluster",
		Long: `Run and administer one node of a threshold encryption cluster.

Every command works on a node's directory (--dir). A running node is administered
over a Unix socket in that directory, never over the network.

Exit codes: 0 ok, 1 other, 2 usage, 3 input or output, 4 configuration or passphrase,
10 members missing, 13 unknown keyset, 130 interrupted.`,
	}
	c.AddCommand(initCommand(), runCommand(), keysetCommand(), statusCommand(), configCommand(), devCommand(), demoCommand(), cli.VersionCommand())
	return c
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
