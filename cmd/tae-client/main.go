// Command tae-client encrypts and decrypts through a quorum of nodes.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/exit"
)

// patience is how long a command may take to end after a signal.
const patience = 500 * time.Millisecond

func main() { cli.Main(root(), patience) }

// global are the flags that every command has.
type global struct {
	config   string
	keyset   string
	timeout  time.Duration
	evidence string
}

func root() *cobra.Command {
	g := &global{}
	c := &cobra.Command{
		Use:   "tae-client",
		Short: "Encrypt and decrypt through a quorum of nodes",
		Long: `Encrypt and decrypt through a quorum of nodes. No node sees a plaintext, and no
node alone can decrypt.

Exit codes: 0 ok, 1 other, 2 usage, 3 input or output, or not a well-formed object,
4 configuration, 10 too few nodes, 11 denied, 12 does not verify, 13 epoch or keyset
unknown or retired, 14 nodes busy, 15 other version, 16 nodes gave wrong values,
20 some items of a batch failed, 130 interrupted.`,
	}
	f := c.PersistentFlags()
	f.StringVar(&g.config, "config", "", "the client's configuration (default: the file named by TAE_CONFIG)")
	f.StringVar(&g.keyset, "keyset", "default", "keyset to use")
	f.DurationVar(&g.timeout, "timeout", 0, "bound on asking the nodes (default: as configured)")
	f.StringVar(&g.evidence, "evidence", "", "directory for evidence against nodes that lie (tae3)")
	c.AddCommand(blameCommand(g), keygenCommand(), encryptCommand(g), decryptCommand(g), batchCommand(g), inspectCommand(), statusCommand(g), cli.VersionCommand())
	return c
}

// optionalInput admits at most one argument, an input file.
func optionalInput(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exit.With(exit.Usage, errors.New("give at most one input file; without one, standard input is read"))
	}
	return nil
}

// configFile is the configuration that --config or TAE_CONFIG names.
func (g *global) configFile() string {
	if g.config != "" {
		return g.config
	}
	return os.Getenv("TAE_CONFIG")
}

// open connects as the configuration says.
func (g *global) open(ctx context.Context) (*client.Client, error) {
	file := g.configFile()
	if g.timeout < 0 {
		return nil, exit.With(exit.Usage, errors.New("--timeout must not be negative"))
	}
	if file == "" {
		return nil, exit.With(exit.Config, errors.New("no configuration; give --config FILE or set TAE_CONFIG"))
	}
	opts := []client.Option{client.WithConfigFile(file), keepEvidence(g.evidence, os.Stderr)}
	if g.timeout > 0 {
		opts = append(opts, client.WithTimeout(g.timeout))
	}
	return client.Open(ctx, opts...)
}
