package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/exit"
	"github.com/seed-a893640b/tae/internal/node"
	"github.com/seed-a893640b/tae/protocol"
)

func keysetCommand() *cobra.Command {
	parent := cli.Group(&cobra.Command{Use: "keyset", Short: "Make and list keysets"})
	parent.AddCommand(createCommand(), listCommand(),
		verbCommand("accept", "Accept a proposed keyset, so that its keys are made"),
		verbCommand("abort", "Give up a keyset that is being made, or refuse a proposal"),
		verbCommand("retry", "Propose a keyset again after all members gave it up"))
	return parent
}

func createCommand() *cobra.Command {
	var dir, suite string
	var k node.NewKeyset
	var noWait, jsonOut bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "create NAME --threshold T --dir DIR",
		Short: "Propose a keyset of all members and wait until every one has stored its keys",
		Long: `Propose a keyset of all members of the cluster. Each member's operator accepts it
with ` + "`tae-node keyset accept NAME`" + `, or auto_accept in its node.yaml does. The
keyset exists when all members have stored their keys, and not before.`,
		Example: "  tae-node keyset create orders --threshold 2 --dir /var/lib/tae",
		Args:    cli.OneArg("keyset name"),
		RunE: func(c *cobra.Command, args []string) error {
			k.Name = args[0]
			s, err := protocol.ParseSuite(suite)
			if err != nil {
				return exit.With(exit.Usage, fmt.Errorf("unknown suite %q; there are tae1 and tae3", suite))
			}
			k.Suite = s
			setModes(&k, c.Flags().Changed("modes"))
			if !k.AllowOne && k.Threshold == 1 {
				return exit.With(exit.Usage, errors.New("t = 1 lets every single node decrypt; if you want that, add --insecure-threshold-one here and in every node.yaml"))
			}
			info, err := node.CreateKeyset(c.Context(), dir, k)
			if err != nil {
				return adminExit(err)
			}
			for _, line := range node.Warnings(dprf.Params{N: info.N, T: info.T}) {
				fmt.Fprintln(c.ErrOrStderr(), line)
			}
			if noWait {
				return printKeyset(c, info, jsonOut)
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			if info, err = waitServing(ctx, c.ErrOrStderr(), dir, info.ID, info.Attempt); err != nil {
				return err
			}
			return printKeyset(c, info, jsonOut)
		},
	}
	f := c.Flags()
	f.IntVar(&k.Threshold, "threshold", 0, "number of nodes needed for every operation (required)")
	_ = c.MarkFlagRequired("threshold")
	f.StringVar(&suite, "suite", "tae1", "tae1: symmetric, fast, for small clusters; tae3: public-key, every answer verified")
	f.StringSliceVar(&k.Modes, "modes", []string{"sealed", "layered"}, "modes that the keyset offers, for its whole life; tae3: sealed")
	f.IntVar(&k.Layers, "layers", 20, "with mode layered: the number of rotations that an object can hold")
	f.IntVar(&k.MaxBatch, "max-batch", 0, "items of one request (default 1024)")
	f.BoolVar(&k.AllowOne, "insecure-threshold-one", false, "admit t = 1, where every single node can decrypt")
	f.BoolVar(&noWait, "no-wait", false, "return when the proposal is made")
	f.DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait; the proposal stays when it is over")
	f.BoolVar(&jsonOut, "json", false, "print one JSON object")
	return dirFlag(c, &dir)
}

// setModes drops what a keyset cannot have unless it was asked for.
func setModes(k *node.NewKeyset, asked bool) {
	if k.Suite == protocol.SuiteTAE3 && !asked {
		k.Modes = []string{"sealed"}
	}
	if !slices.Contains(k.Modes, "layered") {
		k.Layers = 0
	}
}

// adminExit gives errors of the operator's input the usage exit code.
func adminExit(err error) error {
	switch {
	case errors.Is(err, dprf.ErrThreshold), errors.Is(err, dprf.ErrTooManyKeys), errors.Is(err, node.ErrNameTaken), errors.Is(err, node.ErrUsage), errors.Is(err, protocol.ErrName):
		return exit.With(exit.Usage, err)
	case errors.Is(err, node.ErrUnknownKeyset):
		return exit.With(exit.Epoch, err)
	}
	return err
}

// waitServing waits until the node serves the keyset, and says whom it waits for
// when that changes.
func waitServing(ctx context.Context, w io.Writer, dir, id string, attempt uint16) (*node.KeysetInfo, error) {
	said := ""
	for {
		s, err := node.Status(ctx, dir)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		for _, k := range s.Keysets {
			if k.ID != id || k.Attempt != attempt {
				continue
			}
			if k.Serving {
				return &k, nil
			}
			if k.State == "abandoned" || strings.HasPrefix(k.State, "abandoning") {
				return nil, fmt.Errorf("keyset %s was given up: %s", k.Name, k.State)
			}
			if line := fmt.Sprintf("%s of %s", k.State, strings.Join(k.Missing, ", ")); len(k.Missing) > 0 && line != said {
				if said = line; w != nil {
					fmt.Fprintln(w, line)
				}
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, exit.With(exit.Quorum, fmt.Errorf("not all members took part in time (%s); the proposal stays, see `tae-node keyset list`", said))
			}
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func printKeyset(c *cobra.Command, k *node.KeysetInfo, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(c.OutOrStdout(), k)
	}
	return printKeysets(c.OutOrStdout(), []node.KeysetInfo{*k})
}

func verbCommand(verb, short string) *cobra.Command {
	var dir string
	var jsonOut bool
	c := &cobra.Command{
		Use:   verb + " NAME --dir DIR",
		Short: short,
		Args:  cli.OneArg("keyset name"),
		RunE: func(c *cobra.Command, args []string) error {
			info, err := node.KeysetVerb(c.Context(), dir, args[0], verb)
			if err != nil {
				return adminExit(err)
			}
			return printKeyset(c, info, jsonOut)
		},
	}
	c.Flags().BoolVar(&jsonOut, "json", false, "print one JSON object")
	return dirFlag(c, &dir)
}

func listCommand() *cobra.Command {
	var dir string
	var jsonOut bool
	c := &cobra.Command{
		Use:   "list --dir DIR",
		Short: "List the keysets that the node knows",
		Args:  cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := node.Status(c.Context(), dir)
			if err != nil {
				return err
			}
			if jsonOut {
				return cli.PrintJSON(c.OutOrStdout(), s.Keysets)
			}
			return printKeysets(c.OutOrStdout(), s.Keysets)
		},
	}
	c.Flags().BoolVar(&jsonOut, "json", false, "print a JSON array")
	return dirFlag(c, &dir)
}
