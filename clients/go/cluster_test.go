package rlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// Three nodes with a third of the slots each: "b" is on the first, "c" and "a" on the others.
type cluster struct {
	t     testing.TB
	nodes []*server
	start func(t testing.TB, args ...string) *server
}

func startCluster(t testing.TB) *cluster {
	t.Helper()
	return startClusterOf(t, startServer)
}

func startPlainCluster(t testing.TB) *cluster {
	t.Helper()
	return startClusterOf(t, startPlainServer)
}

func startClusterOf(t testing.TB, start func(testing.TB, ...string) *server) *cluster {
	t.Helper()
	c := &cluster{t: t, start: start}
	for n, slots := range []string{"0 5460", "5461 10922", "10923 16383"} {
		c.add()
		c.nodes[n].do("CLUSTER ADDSLOTSRANGE " + slots)
		c.nodes[n].do(fmt.Sprint("CLUSTER SET-CONFIG-EPOCH ", n+1))
		c.meet(n)
	}
	c.agree()
	return c
}

func (c *cluster) add() {
	c.nodes = append(c.nodes, c.start(c.t, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000",
		"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"))
}

func (c *cluster) meet(n int) {
	c.nodes[0].do(fmt.Sprint("CLUSTER MEET 127.0.0.1 ", c.nodes[n].port))
}

// agree waits until all nodes know of all.
func (c *cluster) agree() {
	c.t.Helper()
	until(c.t, "the cluster", func() bool {
		for _, node := range c.nodes {
			info := node.do("CLUSTER INFO").(string)
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprint("cluster_known_nodes:", len(c.nodes), "\r")) {
				return false
			}
		}
		return true
	})
}

func (c *cluster) id(n int) string { return c.nodes[n].do("CLUSTER MYID").(string) }

// replica adds one of the node.
func (c *cluster) replica(of int) *server {
	c.t.Helper()
	c.add()
	n := len(c.nodes) - 1
	c.meet(n)
	c.agree()
	replica := c.nodes[n]
	replica.do("CLUSTER REPLICATE " + c.id(of))
	until(c.t, "the replica", func() bool {
		return strings.Contains(replica.do("INFO replication").(string), "master_link_status:up")
	})
	return replica
}

func (c *cluster) locks() *rlock.Locks {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.nodes[0].addr()}})
	locks := rlock.NewCluster(client)
	c.t.Cleanup(func() {
		locks.Close()
		client.Close()
	})
	return locks
}

// move gives a slot to another node, as resharding does it.
func (c *cluster) move(slot int64, from, to int) {
	c.t.Helper()
	source, target := c.nodes[from], c.nodes[to]
	target.do(fmt.Sprint("CLUSTER SETSLOT ", slot, " IMPORTING ", c.id(from)))
	source.do(fmt.Sprint("CLUSTER SETSLOT ", slot, " MIGRATING ", c.id(to)))
	for _, key := range source.do(fmt.Sprint("CLUSTER GETKEYSINSLOT ", slot, " 100")).([]any) {
		source.do(fmt.Sprint("MIGRATE 127.0.0.1 ", target.port, " ", key, " 0 5000"))
	}
	for _, node := range []*server{target, source} {
		node.do(fmt.Sprint("CLUSTER SETSLOT ", slot, " NODE ", c.id(to)))
	}
}

// The session takes another channel, on the same connection.
func TestSlotOfTheChannelMoves(t *testing.T) {
	c := startCluster(t)
	node, locks := c.nodes[0], c.locks()
	must(locks.Lock(ctx, "b")) // the channel may be in its slot
	watched, other := must(locks.Lock(ctx, "{b1}watched")), must(locks.Lock(ctx, "{b5}other"))
	plain := must(locks.Lock(ctx, "{b1}plain", plainMinute...))
	node.do("RLOCK.ACQUIRE {b1}taken other 60000")
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "{b1}taken") })
	node.waiting("{b1}taken", 1)
	for _, to := range []int{1, 2} {
		channel := node.do("PUBSUB SHARDCHANNELS").([]any)[0].(string)
		connection := node.do("CLIENT LIST TYPE pubsub").(string)
		slot := node.do("CLUSTER KEYSLOT " + channel).(int64)
		if slot == node.do("CLUSTER KEYSLOT {b1}").(int64) {
			break // which is where the only holds are that can be left
		}
		c.move(slot, 0, to)
		until(t, "another channel", func() bool {
			now := node.do("PUBSUB SHARDCHANNELS").([]any)
			return len(now) == 1 && now[0] != channel
		})
		node.waiting("{b1}taken", 1)
		if now := node.do("CLIENT LIST TYPE pubsub").(string); strings.Fields(now)[0] != strings.Fields(connection)[0] {
			t.Error("the connection is another one")
		}
	}
	if err := watched.Err(); err != nil {
		t.Fatal(err)
	}
	must(0, plain.Err())
	if other.Err() == nil {
		must(0, other.Release(ctx))
	}
	node.do("RLOCK.RELEASE {b1}taken other")
	got := soon(t, "the grant", wait)
	must(0, got.err)
	must(0, got.hold.Release(ctx))
	node.do("RLOCK.FORCE {b1}watched")
	lostWith(t, watched, "forced")
	node.do("RLOCK.FORCE {b1}plain")
	lostWith(t, plain, "forced")
}

// Holds at a node that is no master any more are lost, its waits go on at the new one, and
// what is at other nodes stays as it is.
func TestFailover(t *testing.T) {
	for name, fail := range map[string]func(c *cluster, replica *server){
		"takeover": func(_ *cluster, replica *server) { replica.do("CLUSTER FAILOVER TAKEOVER") },
		"killed":   func(c *cluster, _ *server) { c.nodes[2].kill() },
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t)
			replica := c.replica(2)
			locks, others := c.locks(), c.locks()
			lost, stays := must(locks.Lock(ctx, "a")), must(locks.Lock(ctx, "b"))
			plain := must(locks.Lock(ctx, "{a}plain", plainMinute...))
			wait := later(func() (*rlock.Hold, error) { return others.Lock(ctx, "a") })
			c.nodes[2].waiting("a", 1)
			until(t, "the replica to have it all", func() bool { return replica.do("DBSIZE") == c.nodes[2].do("DBSIZE") })
			fail(c, replica)
			soon(t, "the loss", lost.Lost())
			if reason := lost.Err().(*rlock.LostError).Reason; reason != "connection" && reason != "demoted" {
				t.Error(reason)
			}
			got := soon(t, "the grant by the new master", wait)
			must(0, got.err)
			if got.hold.Token <= lost.Token || replica.mode("a") != "exclusive" {
				t.Error(got.hold.Token, lost.Token, replica.mode("a"))
			}
			must(0, got.hold.Release(ctx))
			must(0, stays.Renew(ctx, time.Minute))
			must(0, stays.Release(ctx))
			if plain.Err() == nil { // the old master may have notified its end
				must(0, plain.Renew(ctx, time.Minute))
				replica.do("RLOCK.FORCE {a}plain")
				lostWith(t, plain, "forced")
			}
		})
	}
}
