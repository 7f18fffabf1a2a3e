package uae_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/lattice"
	"github.com/seed-a893640b/tae/uae/nested"
	"github.com/seed-a893640b/tae/uae/recrypt"
)

var writePlot = flag.Bool("plot", false, "measure and write docs/uae-decrypt-time.svg")

// A curve is one line of the plot: microseconds after so many updates.
type curve struct {
	name, class string
	updates     []int
	micros      []float64
}

const (
	plotSize    = 32 << 10
	plotUpdates = 128 // as far as the paper goes
)

// measureCurves times the decryption of one message at several ages. Rounds go
// over all points in turn, so that other load on the machine hits all alike.
func measureCurves(size, rounds int) []curve {
	ages := []int{0, 1, 2, 4, 8, 16, 32, 64, 96, plotUpdates}
	schemes := []struct {
		name, class string
		s           uae.Scheme
		ages        []int
	}{
		{"nested (t = 128)", "n", must(nested.New(plotUpdates)), ages},
		{"lattice R60", "l", must(lattice.New(lattice.R60)), ages},
		{"recrypt", "r", recrypt.New(), []int{0, 2}},
	}
	var curves []curve
	var ops []func()
	for _, c := range schemes {
		k, m := c.s.KeyGen(), make([]byte, size)
		for _, age := range c.ages {
			ct := aged(c.s, k, m, nil, age)
			buf := make([]byte, 0, len(ct))
			ops = append(ops, func() { must(c.s.Decrypt(buf, k, ct, nil)) })
		}
		curves = append(curves, curve{c.name, c.class, c.ages, nil})
	}
	times := make([][]float64, len(ops))
	for range rounds {
		for i, op := range ops {
			op() // warm the caches for the next
			times[i] = append(times[i], timed(op, 1)/1e3)
		}
	}
	i := 0
	for c := range curves {
		for range curves[c].updates {
			curves[c].micros = append(curves[c].micros, median(times[i]))
			i++
		}
		if curves[c].class == "r" { // one group operation per block at any age
			curves[c].updates[1] = plotUpdates
		}
	}
	return curves
}

const plotStyle = `<style>
text { font: 13px sans-serif; fill: #333 }
.axis, .grid { stroke: #999; fill: none } .grid { stroke: #ddd }
polyline { fill: none; stroke-width: 2.5 }
.n { stroke: #1b6fb5 } .l { stroke: #b8580c } .r { stroke: #3a7d34 }
text.n { fill: #1b6fb5; stroke: none } text.l { fill: #b8580c; stroke: none } text.r { fill: #3a7d34; stroke: none }
@media (prefers-color-scheme: dark) {
 text { fill: #ccc } .axis { stroke: #888 } .grid { stroke: #3a3a3a }
 .n { stroke: #6cb4f0 } .l { stroke: #f0a35e } .r { stroke: #8fce88 }
 text.n { fill: #6cb4f0 } text.l { fill: #f0a35e } text.r { fill: #8fce88 }
}
</style>
`

// drawPlot writes an SVG with a logarithmic time axis.
func drawPlot(w io.Writer, curves []curve) error {
	const width, height, left, right, top, bottom = 720, 400, 70, 140, 20, 50
	low, high := 1.0, 6.0 // 10 microseconds to a second
	x := func(n int) float64 { return left + float64(n)/plotUpdates*(width-left-right) }
	y := func(us float64) float64 {
		return height - bottom - (math.Log10(us)-low)/(high-low)*(height-top-bottom)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Decryption time against number of updates">`+"\n", width, height)
	b.WriteString(plotStyle)
	for i, label := range []string{"10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"} {
		at := y(math.Pow(10, low+float64(i)))
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, left, width-right, at, at)
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, at+4, label)
	}
	for n := 0; n <= plotUpdates; n += 16 {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(n), height-bottom+18, n)
	}
	fmt.Fprintf(&b, `<polyline class="axis" style="stroke-width:1" points="%d,%d %d,%d %d,%d"/>`+"\n", left, top, left, height-bottom, width-right, height-bottom)
	fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">updates before decryption (message of 32 kB, one core)</text>`+"\n", x(plotUpdates/2), height-12)
	for _, c := range curves {
		fmt.Fprintf(&b, `<polyline class="%s" points="`, c.class)
		for i, us := range c.micros {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(c.updates[i]), y(us))
		}
		last := len(c.micros) - 1
		fmt.Fprintf(&b, `"/><text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", c.class, x(c.updates[last])+8, y(c.micros[last])+4, c.name)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// TestPlot checks the drawing, and makes the plot of docs/uae.md with -plot (use
// -cpu 1).
func TestPlot(t *testing.T) {
	size, rounds := 300, 1
	if *writePlot {
		size, rounds = plotSize, 31
	}
	curves := measureCurves(size, rounds)
	var b strings.Builder
	if err := drawPlot(&b, curves); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for lines := 0; ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			if lines != 4 {
				t.Errorf("%d lines", lines)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		}
	}
	if *writePlot {
		for _, c := range curves {
			t.Logf("%s: %d updates: %.0f us", c.name, c.updates, c.micros)
		}
		if err := os.WriteFile("../docs/uae-decrypt-time.svg", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
