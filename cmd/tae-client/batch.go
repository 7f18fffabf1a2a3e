package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/exit"
)

// batchLine is one line of input. Bytes are base64.
type batchLine struct {
	Op         string  `json:"op"`
	Reference  string  `json:"reference"`
	Plaintext  *[]byte `json:"plaintext"`
	Text       *string `json:"text"`
	Ciphertext *[]byte `json:"ciphertext"`
	AAD        []byte  `json:"aad"`
	AADText    string  `json:"aad_text"`
}

// batchResult is one line of output, in the order of the input.
type batchResult struct {
	Index      int         `json:"index"`
	Reference  string      `json:"reference,omitempty"`
	Ciphertext []byte      `json:"ciphertext,omitempty"`
	Plaintext  *[]byte     `json:"plaintext,omitempty"`
	Author     string      `json:"author,omitempty"`
	Error      *batchError `json:"error,omitempty"`
}

type batchError struct {
	Code      int    `json:"code"` // the exit code that this error has for a single object
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

const (
	// window is how many lines are handled at once, and windowBytes how long they may be
	// together.
	window      = 1024
	windowBytes = 1 << 20
	// maxLine is the longest line: the longest message as JSON, or an object with the
	// tags of the largest keyset in base64.
	maxLine = 1 << 20
)

func batchCommand(g *global) *cobra.Command {
	var aad aadFlags
	var output string
	c := &cobra.Command{
		Use:   "batch [encrypt|decrypt]",
		Short: "Encrypt or decrypt many messages, one JSON object a line",
		Long: `Encrypt or decrypt many messages of at most 64 KiB, one JSON object a line from
standard input, one result a line to standard output, in order.

Input fields: op (encrypt or decrypt; not needed with an argument), plaintext (base64)
or text, or ciphertext (base64), aad (base64) or aad_text, and reference, a string that
comes back. Lines have at most 1 MiB. Output fields: index, reference, ciphertext or plaintext and author, or error
with code, message and retryable. One bad line does not stop the others: the exit code
is 20 when some failed.`,
		Example:   `  echo '{"reference":"r1","text":"secret"}' | tae-client batch encrypt`,
		ValidArgs: []string{"encrypt", "decrypt"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "encrypt" && args[0] != "decrypt" {
				return exit.With(exit.Usage, errors.New("give encrypt or decrypt, or nothing when every line has its op"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ad, err := aad.read()
			if err != nil {
				return err
			}
			cl, err := g.open(c.Context())
			if err != nil {
				return err
			}
			defer cl.Close()
			b := &batch{k: cl.Keyset(g.keyset), aad: ad}
			if len(args) == 1 {
				b.op = args[0]
			}
			if output != "" && output != "-" {
				return b.runFile(c.Context(), c.InOrStdin(), output)
			}
			return b.run(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
	aad.add(c)
	c.Flags().StringVarP(&output, "output", "o", "", "file to write; it appears only when all lines are done")
	return c
}

type batch struct {
	k      *client.Keyset
	op     string
	aad    []byte // for lines without their own
	done   int
	failed int
}

// errPartial is the end of a batch of which some items failed.
var errPartial = errors.New("some items failed; see their lines")

func (b *batch) run(ctx context.Context, in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	w := bufio.NewWriter(out)
	var lines [][]byte
	size := 0
	for {
		line, err := readLine(r)
		if err != nil && err != io.EOF {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			lines, size = append(lines, line), size+len(line)
		}
		// What is there is answered before more input is waited for.
		if err == io.EOF || len(lines) == window || size >= windowBytes || r.Buffered() == 0 {
			if err := b.window(ctx, lines, w); err != nil {
				return err
			}
			lines, size = lines[:0], 0
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
	}
	if b.failed > 0 {
		return exit.With(exit.Partial, fmt.Errorf("%d of %d: %w", b.failed, b.done, errPartial))
	}
	return nil
}

// readLine reads a line of at most maxLine bytes; of a longer one, one byte more.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLine+1-len(line))]...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// runFile writes the results to a file, which appears also when some items failed:
// their lines say so.
func (b *batch) runFile(ctx context.Context, in io.Reader, name string) error {
	var partial error
	err := writeFile(ctx, name, func(f *os.File) error {
		err := b.run(ctx, in, f)
		if errors.Is(err, errPartial) {
			partial, err = err, nil
		}
		return err
	})
	return errors.Join(err, partial)
}

// window handles some lines: one batch to encrypt and one to decrypt.
func (b *batch) window(ctx context.Context, lines [][]byte, w io.Writer) error {
	results := make([]batchResult, len(lines))
	var items [2][]client.Item
	var at [2][]int
	for i, line := range lines {
		results[i].Index = b.done + i
		l, which, err := b.parse(line)
		results[i].Reference = l.Reference
		if err != nil {
			results[i].Error = &batchError{Code: exit.Input, Message: err.Error()}
			continue
		}
		items[which] = append(items[which], b.item(l, which))
		at[which] = append(at[which], i)
	}
	for which, f := range []func(context.Context, []client.Item) ([]client.Result, error){b.k.EncryptBatch, b.k.DecryptBatch} {
		if len(items[which]) == 0 {
			continue
		}
		got, err := f(ctx, items[which])
		if err != nil {
			return err
		}
		for j, r := range got {
			results[at[which][j]].set(which, r)
		}
	}
	e := json.NewEncoder(w)
	for i := range results {
		if results[i].Error != nil {
			b.failed++
		}
		if err := e.Encode(&results[i]); err != nil {
			return err
		}
	}
	b.done += len(lines)
	return ctx.Err()
}

// fields are those of a line. What a result line holds beside them is passed over, so
// that results can be fed back.
var fields = []string{"op", "reference", "plaintext", "text", "ciphertext", "aad", "aad_text"}

// checkJSON refuses what the standard decoder would change or choose from silently:
// text that is not UTF-8, halves of surrogate pairs, repeated keys, and keys that
// differ in case.
func checkJSON(line []byte) error {
	if !utf8.Valid(line) {
		return errors.New("the line is not UTF-8; give bytes as base64 in plaintext")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return fmt.Errorf("not a JSON object: %w", err)
		}
		key := t.(string)
		if seen[key] || !slices.Contains(fields, key) && key != "index" {
			return fmt.Errorf("unknown or repeated field %q", key)
		}
		seen[key] = true
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return fmt.Errorf("not a JSON object: %w", err)
		}
		var s string
		if json.Unmarshal(v, &s) == nil && strings.ContainsRune(s, utf8.RuneError) && !bytes.ContainsRune(v, utf8.RuneError) &&
			!bytes.Contains(bytes.ToLower(v), []byte(`\ufffd`)) {
			return fmt.Errorf("field %q is not Unicode text; give bytes as base64 in plaintext", key)
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("not a JSON object")
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value on the line")
	}
	return nil
}

const (
	encrypting = 0
	decrypting = 1
)

func (b *batch) parse(line []byte) (l batchLine, which int, err error) {
	if len(line) > maxLine {
		return l, 0, fmt.Errorf("the line is longer than %d bytes", maxLine)
	}
	if err := checkJSON(line); err != nil {
		return l, 0, err
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return l, 0, fmt.Errorf("not a line of this format: %w", err)
	}
	op := l.Op
	if op == "" {
		op = b.op
	}
	if b.op != "" && op != b.op {
		return l, 0, fmt.Errorf("op is %q in a batch to %s", op, b.op)
	}
	switch {
	case op == "encrypt" && (l.Plaintext == nil) == (l.Text == nil):
		return l, 0, errors.New("to encrypt, give plaintext (base64) or text")
	case op == "encrypt" && l.Ciphertext != nil, op == "decrypt" && (l.Plaintext != nil || l.Text != nil):
		return l, 0, fmt.Errorf("a line to %s has fields of the other operation", op)
	case op == "encrypt":
		which = encrypting
	case op == "decrypt" && l.Ciphertext == nil:
		return l, 0, errors.New("to decrypt, give ciphertext (base64)")
	case op == "decrypt":
		which = decrypting
	default:
		return l, 0, errors.New("op must be encrypt or decrypt")
	}
	if len(l.AAD) > 0 && l.AADText != "" {
		return l, 0, errors.New("give aad (base64) or aad_text, not both")
	}
	return l, which, nil
}

func (b *batch) item(l batchLine, which int) client.Item {
	it := client.Item{AAD: b.aad}
	if len(l.AAD) > 0 {
		it.AAD = l.AAD
	} else if l.AADText != "" {
		it.AAD = []byte(l.AADText)
	}
	switch {
	case which == decrypting:
		it.Data = *l.Ciphertext
	case l.Text != nil:
		it.Data = []byte(*l.Text)
	default:
		it.Data = *l.Plaintext
	}
	return it
}

func (r *batchResult) set(which int, got client.Result) {
	switch {
	case got.Err != nil:
		r.Error = &batchError{Code: exit.Code(got.Err), Message: got.Err.Error(), Retryable: client.Retryable(got.Err)}
	case which == encrypting:
		r.Ciphertext = got.Data
	default:
		r.Plaintext = &got.Data
		r.Author = hex.EncodeToString(got.Author[:])
	}
}
