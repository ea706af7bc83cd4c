package cuda

import (
	"testing"

	"github.com/hostlaunch/cuda/internal/hostfn"
)

// TestTieInnerTwice: two calls that have both found the functions of the graph inside a node, as SetParams of two executables may at
// once, leave them the node's.
func TestTieInnerTwice(t *testing.T) {
	table, hosts := new(nodeTable), []hostfn.Handle{3, 4}
	n := table.add(node{raw: 1})
	table.addLoose(hosts)
	table.tieInner(n, hosts)
	table.tieInner(n, hosts)
	if found, err := table.get("test", "n", n); err != nil || found.inner == nil || len(found.inner.hosts) != 2 {
		t.Errorf("%+v, %v", found.inner, err)
	}
}
