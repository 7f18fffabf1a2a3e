package protocol

import (
	"fmt"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

var benchSizes = []dprf.Params{{N: 3, T: 2}, {N: 5, T: 3}, {N: 10, T: 6}}

const benchBatch = 128

// perItem reports the time and the allocations of one item of a batch.
func perItem(b *testing.B, run func()) {
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchBatch, "ns/item")
}

func benchMessages(size int) []Message {
	m := make([]Message, benchBatch)
	for i := range m {
		m[i].Plaintext = sequence(size)
	}
	return m
}

// BenchmarkNode is the work of one node for a request of 128 items. It does not
// depend on the length of the messages.
func BenchmarkNode(b *testing.B) {
	for _, p := range benchSizes {
		c := newTestCluster(b, p.N, p.T)
		e, err := EncryptMessages(c.cert, c.author, benchMessages(32))
		if err != nil {
			b.Fatal(err)
		}
		q := dprf.Set(1<<p.T - 1)
		for _, detail := range []bool{false, true} {
			name := fmt.Sprintf("%d,%d", p.N, p.T)
			if detail {
				name += "/detail"
			}
			r, err := e.Round(q, detail)
			if err != nil {
				b.Fatal(err)
			}
			ask := func(b *testing.B, req []byte) {
				perItem(b, func() {
					if c.servers[1].Handle(c.caller(), req)[1] != 0 {
						b.Fatal("refused")
					}
				})
			}
			req := r.Request(1)
			b.Run("encrypt/"+name, func(b *testing.B) { ask(b, req) })
			for _, node := range q.Nodes() {
				if err := r.Add(node, c.servers[node].Handle(c.caller(), r.Request(node))); err != nil {
					b.Fatal(err)
				}
			}
			if err := r.Finish(); err != nil {
				b.Fatal(err)
			}
			d, _ := benchDecryption(b, c, e.Objects())
			dr, err := d.Round(q, detail)
			if err != nil {
				b.Fatal(err)
			}
			req = dr.Request()
			b.Run("decrypt/"+name, func(b *testing.B) { ask(b, req) })
		}
	}
}

func benchDecryption(b *testing.B, c *testCluster, objects [][]byte) (*Decryption, [][]byte) {
	b.Helper()
	var headers []*Header
	var bodies [][]byte
	for _, object := range objects {
		h, body, err := ParseHeader(object)
		if err != nil {
			b.Fatal(err)
		}
		headers, bodies = append(headers, h), append(bodies, body)
	}
	d, err := NewDecryption(c.cert, headers)
	if err != nil {
		b.Fatal(err)
	}
	return d, bodies
}

// BenchmarkClient is the work of a client for a batch of 128, without that of the
// nodes: to prepare the request and combine the answers, and to parse, ask, combine
// and open.
func BenchmarkClient(b *testing.B) {
	for _, p := range benchSizes {
		c := newTestCluster(b, p.N, p.T)
		q := dprf.Set(1<<p.T - 1)
		for _, size := range []int{32, 4 << 10} {
			messages := benchMessages(size)
			name := fmt.Sprintf("%d,%d/%dB", p.N, p.T, size)
			b.Run("encrypt/prepare/"+name, func(b *testing.B) {
				perItem(b, func() {
					e, err := EncryptMessages(c.cert, c.author, messages)
					if err != nil {
						b.Fatal(err)
					}
					e.Wipe()
				})
			})
			e, err := EncryptMessages(c.cert, c.author, messages)
			if err != nil {
				b.Fatal(err)
			}
			answers := map[int][]byte{}
			if r, err := e.Round(q, false); err == nil {
				for _, node := range q.Nodes() {
					answers[node] = c.servers[node].Handle(c.caller(), r.Request(node))
				}
			}
			b.Run("encrypt/combine/"+name, func(b *testing.B) {
				perItem(b, func() {
					r, err := e.Round(q, false)
					if err != nil {
						b.Fatal(err)
					}
					for _, node := range q.Nodes() {
						_ = r.Request(node)
						if err := r.Add(node, answers[node]); err != nil {
							b.Fatal(err)
						}
					}
					if err := r.Finish(); err != nil {
						b.Fatal(err)
					}
				})
			})
			d, _ := benchDecryption(b, c, e.Objects())
			if r, err := d.Round(q, false); err == nil {
				for _, node := range q.Nodes() {
					answers[node] = c.servers[node].Handle(c.caller(), r.Request())
				}
			}
			b.Run("decrypt/"+name, func(b *testing.B) {
				perItem(b, func() {
					d, bodies := benchDecryption(b, c, e.Objects())
					r, err := d.Round(q, false)
					if err != nil {
						b.Fatal(err)
					}
					_ = r.Request()
					for _, node := range q.Nodes() {
						if err := r.Add(node, answers[node]); err != nil {
							b.Fatal(err)
						}
					}
					for i, body := range bodies {
						o, err := r.Unmask(i)
						if err == nil {
							_, _, err = o.Message(body, nil)
						}
						if err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		}
	}
}
