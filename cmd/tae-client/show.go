package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/armor"
	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/exit"
)

func inspectCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "inspect [FILE]",
		Short: "Show what an object's header says, without asking any node",
		Args:  optionalInput,
		RunE: func(c *cobra.Command, args []string) error {
			in, err := openInput(args)
			if err != nil {
				return err
			}
			defer in.Close()
			src, err := armor.Detect(bufio.NewReader(onlyReader{in}))
			if err != nil {
				return err
			}
			info, err := client.Inspect(src)
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(c.OutOrStdout(), inspection{1, info.Kind, info.Suite, info.Mode, info.Keyset, info.Epoch, info.Moved, info.Tags, info.HeaderSize})
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "kind\t%s\nsuite\t%s\nmode\t%s\nkeyset\t%s\nepoch\t%d\n", info.Kind, info.Suite, info.Mode, info.Keyset, info.Epoch)
			fmt.Fprintf(w, "moved\t%v\ntags\t%d\nheader\t%d bytes\n", info.Moved, info.Tags, info.HeaderSize)
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

type inspection struct {
	SchemaVersion int    `json:"schema_version"`
	Kind          string `json:"kind"`
	Suite         string `json:"suite"`
	Mode          string `json:"mode"`
	Keyset        string `json:"keyset"`
	Epoch         int    `json:"epoch"`
	Moved         bool   `json:"moved"`
	Tags          int    `json:"tags"`
	HeaderBytes   int    `json:"header_bytes"`
}

// statusOutput is the JSON form of status.
type statusOutput struct {
	SchemaVersion int            `json:"schema_version"`
	Nodes         []nodeOutput   `json:"nodes"`
	Keysets       []keysetOutput `json:"keysets"`
}

type nodeOutput struct {
	Name        string  `json:"name"`
	Index       int     `json:"index"`
	Reachable   bool    `json:"reachable"`
	Error       string  `json:"error,omitempty"`
	RTTMillis   float64 `json:"rtt_ms,omitempty"`
	Software    string  `json:"software,omitempty"`
	ClusterHash string  `json:"cluster_hash,omitempty"`
}

type keysetOutput struct {
	Name    string            `json:"name"`
	ID      string            `json:"id"`
	Suite   string            `json:"suite"`
	N       int               `json:"n"`
	T       int               `json:"t"`
	Epoch   int               `json:"epoch"`
	Serving int               `json:"serving"` // nodes that serve it
	Margin  int               `json:"margin"`  // how many of them may fail; negative: no quorum
	Others  map[string]string `json:"others,omitempty"`
}

func statusCommand(g *global) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show which nodes answer and which keysets have a quorum",
		Long:  "Show which nodes answer and which keysets have a quorum. The exit code is 10 when a\nkeyset has none, or no node answers. What nodes say of themselves is not proven.",
		Args:  cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := g.open(c.Context())
			if err != nil {
				return err
			}
			defer cl.Close()
			nodes, err := cl.Status(c.Context())
			if err != nil {
				return err
			}
			s := summarise(nodes)
			if asJSON {
				err = cli.PrintJSON(c.OutOrStdout(), s)
			} else {
				err = s.print(c.OutOrStdout())
			}
			if err != nil {
				return err
			}
			return s.verdict()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func summarise(nodes []client.NodeStatus) *statusOutput {
	s := &statusOutput{SchemaVersion: 1, Nodes: []nodeOutput{}, Keysets: []keysetOutput{}}
	at := map[string]int{}
	for _, n := range nodes {
		o := nodeOutput{Name: n.Name, Index: n.Index, Reachable: n.Err == nil}
		if n.Err != nil {
			o.Error = n.Err.Error()
		} else {
			o.RTTMillis = float64(n.RTT.Round(10*time.Microsecond).Microseconds()) / 1000
			o.Software, o.ClusterHash = n.Software, hex.EncodeToString(n.ClusterHash[:])
		}
		s.Nodes = append(s.Nodes, o)
		for _, k := range n.Keysets {
			key := fmt.Sprintf("%s-%d-%d", k.ID, k.Epoch, k.Attempt)
			i, ok := at[key]
			if !ok {
				i = len(s.Keysets)
				at[key] = i
				s.Keysets = append(s.Keysets, keysetOutput{Name: k.Name, ID: k.ID, Suite: k.Suite, N: k.N, T: k.T, Epoch: k.Epoch, Others: map[string]string{}})
			}
			if k.State == "active" {
				s.Keysets[i].Serving++
			} else {
				s.Keysets[i].Others[n.Name] = k.State
			}
		}
	}
	s.dropAttempts()
	for i := range s.Keysets {
		s.nameMissing(i, nodes)
	}
	for i := range s.Keysets {
		s.Keysets[i].Margin = s.Keysets[i].Serving - s.Keysets[i].T
	}
	return s
}

// dropAttempts leaves out what no node serves: attempts that were given up, and
// proposals.
func (s *statusOutput) dropAttempts() {
	served := s.Keysets[:0]
	for _, k := range s.Keysets {
		if k.Serving > 0 {
			served = append(served, k)
		}
	}
	s.Keysets = served
}

// nameMissing says which nodes that answer do not mention a keyset at all.
func (s *statusOutput) nameMissing(i int, nodes []client.NodeStatus) {
	k := &s.Keysets[i]
	for _, n := range nodes {
		has := n.Err != nil
		for _, nk := range n.Keysets {
			has = has || nk.ID == k.ID
		}
		if !has {
			k.Others[n.Name] = "does not have it"
		}
	}
}

func (s *statusOutput) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tANSWERS\tRTT\tCLUSTER\tVERSION")
	for _, n := range s.Nodes {
		if n.Reachable {
			fmt.Fprintf(w, "%s\tyes\t%.2f ms\t%.16s\t%s\n", n.Name, n.RTTMillis, n.ClusterHash, n.Software)
		} else {
			fmt.Fprintf(w, "%s\tno: %s\t\t\t\n", n.Name, n.Error)
		}
	}
	w.Flush()
	fmt.Fprintln(out)
	fmt.Fprintln(w, "KEYSET\tSUITE\tT OF N\tEPOCH\tSERVING\tMAY FAIL")
	for _, k := range s.Keysets {
		margin := fmt.Sprint(k.Margin)
		if k.Margin < 0 {
			margin = "no quorum"
		}
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%d\t%d\t%s\n", k.Name, k.Suite, k.T, k.N, k.Epoch, k.Serving, margin)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, k := range s.Keysets {
		for node, state := range k.Others {
			fmt.Fprintf(out, "%s: keyset %s: %s\n", node, k.Name, state)
		}
	}
	if mismatch(s.Nodes) {
		fmt.Fprintln(out, "warning: the nodes have different cluster files")
	}
	return nil
}

func mismatch(nodes []nodeOutput) bool {
	hash := ""
	for _, n := range nodes {
		if n.Reachable && hash != "" && n.ClusterHash != hash {
			return true
		}
		if n.Reachable {
			hash = n.ClusterHash
		}
	}
	return false
}

func (s *statusOutput) verdict() error {
	for _, k := range s.Keysets {
		if k.Margin < 0 {
			return exit.With(exit.Quorum, fmt.Errorf("keyset %s has no quorum: %d nodes serve it, %d are needed", k.Name, k.Serving, k.T))
		}
	}
	for _, n := range s.Nodes {
		if n.Reachable {
			return nil
		}
	}
	return exit.With(exit.Quorum, fmt.Errorf("no node answers"))
}
