package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/devcluster"
	"github.com/seed-a893640b/tae/internal/exit"
	"github.com/seed-a893640b/tae/protocol"
)

func devCommand() *cobra.Command {
	var o devcluster.Options
	var suite string
	c := &cobra.Command{
		Use:   "dev --dir DIR",
		Short: "Run a ready local cluster, one process per node, for trying things out",
		Long: `Run a ready local cluster, one process per node, with keyset "default" and a
client that may do everything. What is missing in DIR is made; what is there is
kept. Prints the path of the client's configuration and, when all nodes serve, the
word "ready". Stops cleanly on SIGINT and SIGTERM.

The passphrases lie in files beside the keys: this is not for production.`,
		Example: "  tae-node dev --nodes 3 --threshold 2 --dir ./cluster",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := protocol.ParseSuite(suite)
			if err != nil {
				return exit.With(exit.Usage, fmt.Errorf("unknown suite %q; there are tae1 and tae3", suite))
			}
			o.Suite = s
			o.Log = c.ErrOrStderr()
			return runDev(c.Context(), c.OutOrStdout(), o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Nodes, "nodes", 3, "number of nodes")
	f.IntVar(&o.Threshold, "threshold", 2, "number of nodes needed")
	f.StringVar(&suite, "suite", "tae1", "tae1: symmetric, fast, for small clusters; tae3: public-key, every answer verified")
	f.BoolVar(&o.AllowOne, "insecure-threshold-one", false, "admit t = 1, where every single node can decrypt")
	return dirFlag(c, &o.Dir)
}

func runDev(ctx context.Context, out io.Writer, o devcluster.Options) error {
	cluster, err := devcluster.Start(ctx, o)
	if err != nil {
		return devError(err)
	}
	defer cluster.Stop()
	fmt.Fprintln(out, cluster.ClientConfig())
	if err := makeDefault(ctx, cluster, o); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	fmt.Fprintln(out, "ready")
	<-ctx.Done()
	return nil
}

func devError(err error) error {
	if errors.Is(err, devcluster.ErrUsage) {
		return exit.With(exit.Usage, err)
	}
	return err
}

// makeDefault makes the keyset "default" where it is missing and waits until all
// nodes serve it.
func makeDefault(ctx context.Context, cluster *devcluster.Cluster, o devcluster.Options) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	id, attempt, err := cluster.EnsureKeyset(ctx, "default")
	if err != nil {
		return adminExit(err)
	}
	for _, dir := range cluster.NodeDirs() {
		if _, err := waitServing(ctx, nil, dir, id, attempt); err != nil {
			return err
		}
	}
	return nil
}
