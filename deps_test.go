// Package tae holds the test of the import graph. docs/ARCHITECTURE.md shows it.
package tae

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seed-a893640b/tae/"

// allowed maps every package to the packages of this module that its non-test code
// may import. A new package fails the test until it is added: the graph is changed
// on purpose or not at all.
var allowed = map[string]string{
	"":                     "",
	"cmd/tae-client":       "client internal/armor internal/cli internal/config internal/exit protocol",
	"cmd/tae-node":         "client dprf internal/cli internal/config internal/devcluster internal/exit internal/node protocol",
	"client":               "dprf internal/config internal/p2p protocol sig",
	"dprf":                 "dprf/ristretto internal/labelhash internal/secret",
	"dprf/ristretto":       "",
	"internal/armor":       "",
	"internal/cli":         "internal/exit",
	"internal/config":      "internal/labelhash internal/secret sig",
	"internal/devcluster":  "dprf internal/config internal/disk internal/node protocol",
	"internal/disk":        "",
	"internal/e2e":         "",
	"internal/exit":        "client internal/armor internal/config internal/p2p protocol",
	"internal/labelhash":   "",
	"internal/node":        "dprf internal/config internal/disk internal/labelhash internal/p2p internal/secret protocol protocol/keygen",
	"internal/p2p":         "",
	"internal/secret":      "",
	"netsim":               "",
	"protocol":             "dprf dprf/ristretto internal/labelhash sig sig/bls",
	"protocol/dkg":         "dprf/ristretto internal/labelhash internal/secret sig/bls",
	"protocol/keygen":      "dprf internal/labelhash internal/secret protocol protocol/dkg sig sig/bls",
	"sig/bls":              "internal/secret",
	"sig":                  "internal/labelhash",
	"taetest":              "client internal/config internal/disk internal/node internal/secret netsim protocol",
	"uae":                  "internal/labelhash internal/secret",
	"uae/internal/frame":   "internal/labelhash internal/secret uae",
	"uae/internal/vectest": "internal/labelhash uae",
	"uae/lattice":          "internal/labelhash internal/secret uae uae/internal/frame",
	"uae/nested":           "internal/labelhash internal/secret uae uae/internal/frame",
	"uae/recrypt":          "internal/labelhash internal/secret uae uae/internal/frame",
}

// pure packages are cryptography and protocol only: no network, disk, clock, lock or
// log. (uae splits blocks over goroutines, so it may use sync.)
var pure = []string{"dprf", "dprf/ristretto", "sig", "sig/bls", "protocol", "protocol/dkg", "protocol/keygen", "internal/labelhash"}

var impure = []string{"net", "os", "time", "sync", "log", "log/slog", "math/rand", "math/rand/v2"}

type listed struct {
	ImportPath string
	Imports    []string
}

// list reads the imports of all non-test files. It opens the files itself, so that the
// test cache knows what the result depends on.
func list(t *testing.T) (all []listed) {
	t.Helper()
	at := map[string]int{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), ".")
		k, ok := at[dir]
		if !ok {
			k = len(all)
			at[dir] = k
			all = append(all, listed{ImportPath: dir})
		}
		for _, i := range f.Imports {
			all[k].Imports = append(all[k].Imports, strings.Trim(i.Path.Value, `"`))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// violations says what is wrong with the imports of one package.
func violations(l listed) (bad []string) {
	may, known := allowed[l.ImportPath]
	if !known {
		return []string{"package " + l.ImportPath + " is not in the graph; add it on purpose"}
	}
	for _, i := range l.Imports {
		if own, ok := strings.CutPrefix(i, module); ok {
			if !slices.Contains(strings.Fields(may), own) {
				bad = append(bad, l.ImportPath+" imports "+own)
			}
			continue
		}
		if slices.Contains(pure, l.ImportPath) && (slices.Contains(impure, i) || strings.Contains(i, "libp2p")) {
			bad = append(bad, l.ImportPath+" must stay pure and imports "+i)
		}
		if strings.Contains(i, "libp2p") && l.ImportPath != "internal/p2p" {
			bad = append(bad, l.ImportPath+" imports "+i+"; only internal/p2p may")
		}
	}
	return bad
}

func TestImportGraph(t *testing.T) {
	all := list(t)
	if len(all) < 10 {
		t.Fatalf("only %d packages found", len(all))
	}
	for _, l := range all {
		for _, v := range violations(l) {
			t.Error(v)
		}
	}
}

// The check itself must find what it is for.
func TestImportGraphFindsViolations(t *testing.T) {
	for _, l := range []listed{
		{"protocol", []string{"time"}},
		{"dprf", []string{module + "protocol"}},
		{"client", []string{"github.com/libp2p/go-libp2p"}},
		{"internal/newcomer", nil},
	} {
		if len(violations(l)) == 0 {
			t.Errorf("%+v passes", l)
		}
	}
}
