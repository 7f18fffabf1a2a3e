package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/internal/exit"
	"github.com/seed-a893640b/tae/internal/node"
)

func initCommand() *cobra.Command {
	var dir, name string
	var pass config.Passphrase
	c := &cobra.Command{
		Use:   "init --dir DIR --name NAME --passphrase-file FILE",
		Short: "Make a node directory with a new identity, and print its public key",
		Long: `Make a node directory with a new identity, sealed under a passphrase, and print
its public key, which goes into the cluster file of every node and client.`,
		Example: "  tae-node init --dir /var/lib/tae --name n1 --passphrase-file /etc/tae/passphrase",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if pass == (config.Passphrase{}) {
				pass.File = "passphrase"
			}
			pub, err := node.Init(dir, name, pass, node.DefaultSealCost)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), pub)
			fmt.Fprintf(c.ErrOrStderr(), "made %s; put this key under members in cluster.yaml, and the file into the directory\n", dir)
			return nil
		},
	}
	c.Flags().StringVar(&name, "name", "n1", "the node's name in the cluster file")
	c.Flags().StringVar(&pass.File, "passphrase-file", "", "file with the passphrase, relative to DIR (default passphrase)")
	c.Flags().StringVar(&pass.FDEnv, "passphrase-fd-env", "", "environment variable that holds the number of a descriptor to read the passphrase from")
	c.Flags().StringVar(&pass.Credential, "passphrase-credential", "", "systemd credential with the passphrase")
	c.MarkFlagsMutuallyExclusive("passphrase-file", "passphrase-fd-env", "passphrase-credential")
	return dirFlag(c, &dir)
}

func runCommand() *cobra.Command {
	var dir string
	var withStdin bool
	c := &cobra.Command{
		Use:     "run --dir DIR",
		Short:   "Run the node until SIGINT or SIGTERM",
		Example: "  tae-node run --dir /var/lib/tae",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, _, _, err := node.Check(dir)
			if err != nil {
				return err
			}
			ctx, stop := context.WithCancel(c.Context())
			defer stop()
			if withStdin {
				go func() {
					_, _ = io.Copy(io.Discard, os.Stdin)
					stop()
				}()
			}
			log := newLogger(c.ErrOrStderr(), cfg.LogLevel)
			defer log.Sync() //nolint:errcheck // nothing is left to tell it to
			err = node.Run(ctx, node.Options{Dir: dir, Software: cli.Software(), Logger: log,
				Ready: func(addrs []string) { log.Info("ready", zap.Strings("addrs", addrs)) }})
			if errors.Is(err, node.ErrPassphrase) {
				return exit.With(exit.Config, err)
			}
			return err
		},
	}
	c.Flags().BoolVar(&withStdin, "exit-with-stdin", false, "stop when standard input ends")
	_ = c.Flags().MarkHidden("exit-with-stdin")
	return dirFlag(c, &dir)
}

// newLogger writes one JSON line per event to w.
func newLogger(w io.Writer, level string) *zap.Logger {
	l, err := zapcore.ParseLevel(level)
	if err != nil || level == "" {
		l = zapcore.InfoLevel
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.Lock(zapcore.AddSync(w)), l))
}

func configCommand() *cobra.Command {
	var dir string
	parent := cli.Group(&cobra.Command{Use: "config", Short: "Check the configuration"})
	validate := &cobra.Command{
		Use:   "validate --dir DIR",
		Short: "Check node.yaml, cluster.yaml and policy.yaml and say what they amount to",
		Args:  cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, cluster, policy, err := node.Check(dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "ok: node %s of cluster %s, %d members, %d clients, %d of them with rights here, cluster hash %x\n",
				cfg.Name, cluster.Name, len(cluster.Members), len(cluster.Clients), len(policy.Clients), hashStart(cluster))
			return nil
		},
	}
	parent.AddCommand(dirFlag(validate, &dir))
	return parent
}

func hashStart(c *config.Cluster) []byte {
	h := c.Hash()
	return h[:8]
}

func statusCommand() *cobra.Command {
	var dir string
	var asJSON bool
	c := &cobra.Command{
		Use:   "status --dir DIR",
		Short: "Show the running node, its connections and its keysets",
		Args:  cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := node.Status(c.Context(), dir)
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(c.OutOrStdout(), s)
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "node %s (%d) of cluster %s, hash %.16s, %s\n", s.Node, s.Index, s.Cluster, s.ClusterHash, s.Software)
			fmt.Fprintf(w, "\nPEER\tCONNECTED\tRTT\tADDRESS\n")
			for _, p := range s.Peers {
				state := "yes"
				if !p.Connected {
					state = "no: " + p.Error
				}
				fmt.Fprintf(w, "%s\t%s\t%.1f ms\t%s\n", p.Name, state, p.RTTMillis, p.Addr)
			}
			w.Flush()
			fmt.Fprintln(c.OutOrStdout())
			return printKeysets(c.OutOrStdout(), s.Keysets)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return dirFlag(c, &dir)
}

func printKeysets(out io.Writer, list []node.KeysetInfo) error {
	if len(list) == 0 {
		fmt.Fprintln(out, "no keysets; `tae-node keyset create NAME` proposes one")
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEYSET\tSUITE\tT OF N\tEPOCH\tMODES\tSTATE")
	for _, k := range list {
		state := k.State
		if k.State == "proposed" {
			state = fmt.Sprintf("proposed by %s; `tae-node keyset accept %s` accepts it", k.Proposer, k.Name)
		}
		if len(k.Missing) > 0 {
			state += " of " + strings.Join(k.Missing, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%d\t%s\t%s\n", k.Name, k.Suite, k.T, k.N, k.Epoch, strings.Join(k.Modes, ","), state)
	}
	return w.Flush()
}
