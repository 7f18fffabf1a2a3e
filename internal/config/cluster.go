package config

import (
	"fmt"
	"regexp"
	"sort"

	"github.com/seed-a893640b/tae/internal/labelhash"
)

// A Cluster is cluster.yaml: public, and identical on every node and client.
type Cluster struct {
	Version int                  `yaml:"version"`
	Name    string               `yaml:"cluster"`
	Members []Member             `yaml:"members"`
	Clients map[string]PublicKey `yaml:"clients"`
}

// A Member is one node of the cluster.
type Member struct {
	Index int       `yaml:"index"`
	Name  string    `yaml:"name"`
	Key   PublicKey `yaml:"key"`
	Addrs []string  `yaml:"addrs,flow"` // multiaddrs such as /dns4/n1.example/tcp/7700
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

const nameRule = "a name has 1 to 64 characters of a-z, 0-9, '-', '_' and '.', the first a letter or digit"

// LoadCluster reads and checks cluster.yaml.
func LoadCluster(file string) (*Cluster, error) {
	c := new(Cluster)
	if err := load(file, c); err != nil {
		return nil, err
	}
	return c, c.check(file)
}

func (c *Cluster) check(file string) error {
	if c.Version != version {
		return fail(file, "version: is %d, this program reads %d", c.Version, version)
	}
	if !namePattern.MatchString(c.Name) {
		return fail(file, "cluster: %q: %s", c.Name, nameRule)
	}
	if len(c.Members) == 0 || len(c.Members) > 64 {
		return fail(file, "members: %d listed, a cluster has 1 to 64", len(c.Members))
	}
	names, keys := map[string]bool{}, map[PublicKey]string{}
	for i, m := range c.Members {
		where := fmt.Sprintf("members[%d]", i)
		switch {
		case m.Index != i+1:
			return fail(file, "%s.index: is %d, members are listed in order from 1", where, m.Index)
		case !namePattern.MatchString(m.Name):
			return fail(file, "%s.name: %q: %s", where, m.Name, nameRule)
		case names[m.Name]:
			return fail(file, "%s.name: %s is listed twice", where, m.Name)
		case m.Key == PublicKey{}:
			return fail(file, "%s.key: missing; `tae-node init` printed it on that node", where)
		case keys[m.Key] != "":
			return fail(file, "%s.key: is also the key of %s", where, keys[m.Key])
		case len(m.Addrs) == 0:
			return fail(file, "%s.addrs: missing, for example [/dns4/%s.example/tcp/7700]", where, m.Name)
		}
		names[m.Name], keys[m.Key] = true, m.Name
	}
	for name, key := range c.Clients {
		switch {
		case !namePattern.MatchString(name):
			return fail(file, "clients.%s: %s", name, nameRule)
		case key == PublicKey{}:
			return fail(file, "clients.%s: key missing; `tae-client keygen` prints it", name)
		case keys[key] != "":
			return fail(file, "clients.%s: is also the key of %s", name, keys[key])
		}
		keys[key] = name
	}
	return nil
}

// Save writes the cluster file.
func (c *Cluster) Save(file string) error {
	return save(file, "Public, and identical on every node and client of the cluster.", c, 0o644)
}

// Hash identifies the configuration, whatever its layout as text, so that nodes can
// tell whether they have the same.
func (c *Cluster) Hash() [32]byte {
	h := labelhash.New("tae/v1/cluster").Var([]byte(c.Name)).Uint32(uint32(len(c.Members)))
	for _, m := range c.Members {
		h.Var([]byte(m.Name)).Fixed(m.Key[:]).Uint32(uint32(len(m.Addrs)))
		for _, a := range m.Addrs {
			h.Var([]byte(a))
		}
	}
	names := make([]string, 0, len(c.Clients))
	for name := range c.Clients {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		key := c.Clients[name]
		h.Var([]byte(name)).Fixed(key[:])
	}
	return h.Sum()
}

// MemberKeys are the members' keys in the order of their indices.
func (c *Cluster) MemberKeys() [][32]byte {
	keys := make([][32]byte, len(c.Members))
	for i, m := range c.Members {
		keys[i] = m.Key
	}
	return keys
}

// Policy is policy.yaml: what this node allows each client to do under each
// keyset. What is not listed is denied.
type Policy struct {
	Version int                                `yaml:"version"`
	Clients map[string]map[string]PolicyRights `yaml:"clients"`
}

// AnyKeyset stands for every keyset that the client has no entry of its own for.
const AnyKeyset = "*"

// PolicyRights are one client's rights under one keyset.
type PolicyRights struct {
	Encrypt bool `yaml:"encrypt,omitempty"`
	Decrypt bool `yaml:"decrypt,omitempty"`
	Rotate  bool `yaml:"rotate,omitempty"`
}

// LoadPolicy reads and checks policy.yaml against the cluster's clients.
func LoadPolicy(file string, cluster *Cluster) (*Policy, error) {
	p := new(Policy)
	if err := load(file, p); err != nil {
		return nil, err
	}
	if p.Version != version {
		return nil, fail(file, "version: is %d, this program reads %d", p.Version, version)
	}
	for client, keysets := range p.Clients {
		if _, ok := cluster.Clients[client]; !ok {
			return nil, fail(file, "clients.%s: the cluster file lists no client of this name", client)
		}
		for keyset := range keysets {
			if keyset != AnyKeyset && !namePattern.MatchString(keyset) {
				return nil, fail(file, "clients.%s.%s: %s", client, keyset, nameRule)
			}
		}
	}
	return p, nil
}

// Save writes the policy file.
func (p *Policy) Save(file string) error {
	return save(file, "What this node allows: client, keyset, operations. What is not listed is denied.", p, 0o600)
}
