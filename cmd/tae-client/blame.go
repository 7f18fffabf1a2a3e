package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/internal/exit"
	"github.com/seed-a893640b/tae/protocol"
)

// keepEvidence writes evidence of lies into a directory, one file per lie.
func keepEvidence(dir string, stderr io.Writer) client.Option {
	return client.WithEvidence(func(e client.Evidence) {
		if dir == "" {
			fmt.Fprintf(stderr, "warning: node %s lied: %s; run again with --evidence DIR to keep the evidence\n", e.Node, e.Reason)
			return
		}
		sum := sha256.Sum256(e.Bundle)
		name := filepath.Join(dir, fmt.Sprintf("%s-%x.evidence", e.Node, sum[:6]))
		if err := os.WriteFile(name, e.Bundle, 0o600); err != nil {
			fmt.Fprintf(stderr, "warning: node %s lied: %s; cannot keep the evidence: %v\n", e.Node, e.Reason, err)
			return
		}
		fmt.Fprintf(stderr, "warning: node %s lied: %s; evidence in %s\n", e.Node, e.Reason, name)
	})
}

func blameCommand(g *global) *cobra.Command {
	parent := cli.Group(&cobra.Command{Use: "blame", Short: "Check evidence against a node"})
	var cluster string
	verify := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check, offline, whether evidence convicts a node of a lie",
		Long: `Check, offline, whether evidence convicts a node of a lie: an answer that the node
signed, with a proof or a partial signature that does not verify. The keys of the
members are taken from your own cluster file. Exit code 0: convicted; 12: not.`,
		Example: "  tae-client blame verify --cluster cluster.yaml n2-0a1b2c3d4e5f.evidence",
		Args:    cli.OneArg("evidence file"),
		RunE: func(c *cobra.Command, args []string) error {
			members, err := blameMembers(g, cluster)
			if err != nil {
				return err
			}
			b, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			e, err := protocol.ParseEvidence(b)
			if err != nil {
				return exit.With(exit.Input, fmt.Errorf("%s: %w", args[0], err))
			}
			what, err := e.Verify(members.MemberKeys())
			if err != nil {
				return exit.With(exit.Authentication, fmt.Errorf("%s convicts nobody: %w", args[0], err))
			}
			cert := e.Certificate()
			fmt.Fprintf(c.OutOrStdout(), "node %s (%d) %s, keyset %s, epoch %d, generation %d\n",
				members.Members[e.Node()-1].Name, e.Node(), what, cert.Name, cert.Epoch, cert.Generation)
			return nil
		},
	}
	verify.Flags().StringVar(&cluster, "cluster", "", "cluster file (default: that of the client's configuration)")
	parent.AddCommand(verify)
	return parent
}

func blameMembers(g *global, cluster string) (*config.Cluster, error) {
	if cluster == "" {
		file := g.configFile()
		if file == "" {
			return nil, exit.With(exit.Config, errors.New("give --cluster FILE, or --config or TAE_CONFIG"))
		}
		c, err := config.LoadClient(file)
		if err != nil {
			return nil, err
		}
		cluster = c.Cluster
	}
	return config.LoadCluster(cluster)
}
