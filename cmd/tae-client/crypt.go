package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/armor"
	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/internal/exit"
)

// aadFlags give the associated data.
type aadFlags struct{ text, file string }

func (a *aadFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&a.text, "aad", "", "associated data: not stored, needed again to decrypt")
	c.Flags().StringVar(&a.file, "aad-file", "", "file with the associated data")
	c.MarkFlagsMutuallyExclusive("aad", "aad-file")
}

const maxAAD = 1 << 20

func (a *aadFlags) read() ([]byte, error) {
	if a.file == "" {
		return []byte(a.text), nil
	}
	f, err := os.Open(a.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAAD+1))
	if err == nil && len(b) > maxAAD {
		err = exit.With(exit.Input, fmt.Errorf("%s: associated data longer than 1 MiB", a.file))
	}
	return b, err
}

// openInput opens the input file, or standard input.
func openInput(args []string) (*os.File, error) {
	if len(args) == 0 || args[0] == "-" {
		return os.Stdin, nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, exit.With(exit.Input, fmt.Errorf("%s is a directory", args[0]))
	}
	return f, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func encryptCommand(g *global) *cobra.Command {
	var aad aadFlags
	var output string
	var armored, crossChecked bool
	c := &cobra.Command{
		Use:   "encrypt [FILE]",
		Short: "Encrypt a file or standard input",
		Long: `Encrypt a file or standard input, of any length and in constant memory.

To standard output the pipe form is written, which is signed at its end. With -o the
file form is written, whose header commits to the whole file; the file appears under
its name only when it is complete. -o - writes binary output even to a terminal.`,
		Example: "  tae-client encrypt --aad backups/2026 -o backup.tae backup.tar\n  tar c . | tae-client encrypt > backup.tae",
		Args:    optionalInput,
		RunE: func(c *cobra.Command, args []string) error {
			if output == "" && !armored && isTerminal(c.OutOrStdout()) {
				return exit.With(exit.Usage, errors.New("the output is binary and goes to a terminal; use -o FILE, --armor, or -o - to insist"))
			}
			ad, err := aad.read()
			if err != nil {
				return err
			}
			in, err := openInput(args)
			if err != nil {
				return err
			}
			defer in.Close()
			cl, err := g.open(c.Context())
			if err != nil {
				return err
			}
			defer cl.Close()
			k := cl.Keyset(g.keyset)
			if crossChecked {
				k = k.CrossChecked()
			}
			return encrypt(c, k, in, output, armored, ad)
		},
	}
	aad.add(c)
	c.Flags().StringVarP(&output, "output", "o", "", "file to write; it appears only when complete")
	c.Flags().BoolVar(&armored, "armor", false, "write text (in the pipe form)")
	c.Flags().BoolVar(&crossChecked, "cross-check", false, "ask 2t-1 nodes and compare, so that a lying node cannot make a dead object")
	return c
}

func encrypt(c *cobra.Command, k *client.Keyset, in io.Reader, output string, armored bool, aad []byte) error {
	if output == "" || output == "-" {
		return encryptPipe(c.Context(), k, c.OutOrStdout(), in, armored, aad)
	}
	return writeFile(c.Context(), output, func(f *os.File) error {
		if armored {
			return encryptPipe(c.Context(), k, f, in, true, aad)
		}
		return k.EncryptFile(c.Context(), f, in, aad)
	})
}

func encryptPipe(ctx context.Context, k *client.Keyset, out io.Writer, in io.Reader, armored bool, aad []byte) error {
	finish := func() error { return nil }
	if armored {
		a := armor.NewWriter(out)
		out, finish = a, a.Close
	}
	w := k.EncryptWriter(ctx, out, aad)
	// The first read decides nothing, but the secret is hedged with what it brings.
	if _, err := io.CopyBuffer(onlyWriter{w}, in, make([]byte, 64<<10)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return finish()
}

// onlyWriter and onlyReader keep io.Copy from choosing another way than a buffer.
type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }

func decryptCommand(g *global) *cobra.Command {
	var aad aadFlags
	var output string
	c := &cobra.Command{
		Use:   "decrypt [FILE]",
		Short: "Decrypt a file or standard input",
		Long: `Decrypt a file or standard input, binary or armored, in constant memory.

To standard output chunks are released as they verify, before the end is known: on
any exit code but 0 throw the output away. With -o the file appears under its name
only when everything has verified.`,
		Example: "  tae-client decrypt --aad backups/2026 -o backup.tar backup.tae\n  tae-client decrypt < backup.tae | tar x",
		Args:    optionalInput,
		RunE: func(c *cobra.Command, args []string) error {
			ad, err := aad.read()
			if err != nil {
				return err
			}
			in, err := openInput(args)
			if err != nil {
				return err
			}
			defer in.Close()
			src, err := armor.Detect(bufio.NewReaderSize(onlyReader{in}, 64<<10))
			if err != nil {
				return exit.With(exit.Input, err)
			}
			cl, err := g.open(c.Context())
			if err != nil {
				return err
			}
			defer cl.Close()
			return decrypt(c, cl.Keyset(g.keyset), src, output, ad)
		},
	}
	aad.add(c)
	c.Flags().StringVarP(&output, "output", "o", "", "file to write; it appears only when all of it has verified")
	return c
}

func decrypt(c *cobra.Command, k *client.Keyset, src io.Reader, output string, aad []byte) error {
	run := func(w io.Writer) error {
		r, err := k.DecryptReader(c.Context(), src, aad)
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(onlyWriter{w}, onlyReader{r}, make([]byte, 64<<10))
		return err
	}
	if output != "" && output != "-" {
		return writeFile(c.Context(), output, func(f *os.File) error { return run(f) })
	}
	out := c.OutOrStdout()
	if output == "" && isTerminal(out) {
		out = &textOnly{w: out}
	}
	return run(out)
}

// textOnly refuses to write binary data to a terminal.
type textOnly struct {
	w       io.Writer
	checked bool
}

func (t *textOnly) Write(p []byte) (int, error) {
	if !t.checked {
		for _, b := range p {
			if b < 0x20 && b != '\n' && b != '\r' && b != '\t' || b == 0x7f {
				return 0, exit.With(exit.Usage, errors.New("the plaintext is binary and goes to a terminal; use -o FILE, or -o - to insist"))
			}
		}
		if len(p) < 64<<10 && !utf8.Valid(p) {
			return 0, exit.With(exit.Usage, errors.New("the plaintext is binary and goes to a terminal; use -o FILE, or -o - to insist"))
		}
	}
	return t.w.Write(p)
}

func keygenCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:     "keygen -o FILE",
		Short:   "Make a client key and print its public key",
		Long:    "Make a client key, write it to a new file readable by you only, and print the public\nkey, which goes under clients in the cluster file. An existing file is never replaced.",
		Example: "  tae-client keygen -o client.key",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if output == "" {
				return exit.With(exit.Usage, errors.New("-o FILE is required: the key is written nowhere else"))
			}
			pub, key, err := ed25519.GenerateKey(nil)
			if err != nil {
				return err
			}
			if err := config.SaveClientKey(output, key); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), config.PublicKey(pub))
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "file for the private key")
	return c
}
