package protocol

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every rule in docs/spec.md section 15.2 that is built has a test and a control,
// every test named there exists, and every game is named there.
func TestSpecTable(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "spec.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, security, ok := strings.Cut(string(b), "### 15.2 ")
	if !ok {
		t.Fatal("section 15.2 is missing")
	}
	security, _, _ = strings.Cut(security, "## 16. ")
	tests := map[string]bool{}
	for _, dir := range []string{".", "keygen", "dkg", filepath.Join("..", "dprf"), filepath.Join("..", "sig", "bls")} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
				tests[string(m[1])] = true
			}
		}
	}
	name := regexp.MustCompile("`(Test\\w+)`")
	named := map[string]bool{}
	for _, m := range name.FindAllStringSubmatch(security, -1) {
		named[m[1]] = true
		if !tests[m[1]] {
			t.Errorf("the table names %s, which does not exist", m[1])
		}
	}
	for test := range tests {
		if strings.HasPrefix(test, "TestGame") && !named[test] {
			t.Errorf("%s is in no row of the table", test)
		}
	}
	rows, built := 0, 0
	for _, line := range strings.Split(security, "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| rule") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		rows++
		if len(cells) != 4 {
			t.Errorf("%d cells: %s", len(cells), line)
			continue
		}
		when := strings.TrimSpace(cells[3])
		switch {
		case when == "now":
			built++
			if !name.MatchString(cells[1]) || strings.TrimSpace(cells[2]) == "" {
				t.Errorf("no test or no control: %s", cells[0])
			}
		case !strings.HasPrefix(when, "later: ") || strings.TrimSpace(cells[1]) != "":
			t.Errorf("neither built nor later: %s", line)
		}
	}
	if rows < 40 || built < 20 {
		t.Errorf("%d rows, %d of them built", rows, built)
	}
}
