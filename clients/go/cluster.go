package rlock

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// NewCluster makes locks on the cluster of the client: a connection to each node that has a
// key which is asked for.
func NewCluster(client *redis.ClusterClient, settings ...Setting) *Locks {
	l := newLocks(settings)
	r := &cluster{client: client, locks: l, nodes: map[string]*session{}}
	r.unrouted = newSession(l, nil)
	r.unrouted.reach = r.find
	l.router = r
	return l
}

// cluster is the router by slots, of which the client knows which node has which.
type cluster struct {
	client *redis.ClusterClient
	locks  *Locks
	nodes  map[string]*session
	// unrouted has what was asked at the wrong node. It has no connection.
	unrouted *session
}

func (r *cluster) session(ctx context.Context, key string) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, r.locks.timeout)
	defer cancel()
	defer context.AfterFunc(r.locks.closing, cancel)()
	node, err := r.master(ctx, key)
	if refused := refusal(err); refused != nil {
		return nil, refused
	}
	defer r.locks.lock()()
	if err != nil {
		r.unrouted.failure = err
		return r.unrouted, nil
	}
	return r.node(node, key), nil
}

// master asks the client, whose hooks and limits are the program's.
func (r *cluster) master(ctx context.Context, key string) (*redis.Client, error) {
	return apart(ctx, r.locks, func(*redis.Client) {}, func() (*redis.Client, error) {
		return r.client.MasterForKey(ctx, key)
	})
}

func (r *cluster) sessions() []*session {
	return append(slices.Collect(maps.Values(r.nodes)), r.unrouted)
}

func (r *cluster) elsewhere() *session { return r.unrouted }

// node is the session with it. The key, which it has, is one whose slot its channel can be in.
func (r *cluster) node(client *redis.Client, key string) *session {
	addr := client.Options().Addr
	s := r.nodes[addr]
	if s == nil {
		s = newSession(r.locks, ownOptions(client))
		s.subscribe = "SSUBSCRIBE"
		s.channel = func() string { return channelAt(s.near) }
		r.nodes[addr] = s
	}
	s.near = key
	return s
}

// The pause between two looks at who has which slots, unless the look itself takes long. What
// the client knows of them is as old as the pause.
const lookAgain = 100 * time.Millisecond

// find asks again for what is unrouted, at the nodes that have the slots now.
func (r *cluster) find() {
	var took time.Duration
	for delay := 10 * time.Millisecond; ; delay = max(min(2*delay, lookAgain), 4*took) {
		r.client.ReloadState(r.locks.ended) // goes on beside this
		select {
		case <-time.After(delay):
		case <-r.locks.ended.Done():
		}
		var keys []string
		r.locks.locked(func() {
			for h := range r.unrouted.requests {
				keys = append(keys, h.key)
			}
			for t := range r.unrouted.pending {
				keys = append(keys, t.key)
			}
			r.unrouted.dialing = len(keys) > 0 && r.locks.ended.Err() == nil
		})
		if len(keys) == 0 || r.locks.ended.Err() != nil {
			return
		}
		began := time.Now()
		nodes := map[string]*redis.Client{}
		for _, key := range keys {
			if nodes[key] != nil {
				continue
			}
			ctx, cancel := context.WithTimeout(r.locks.ended, r.locks.timeout)
			node, err := r.master(ctx, key)
			cancel()
			if err == nil {
				nodes[key] = node
			} else {
				r.locks.locked(func() { r.unrouted.failure = err })
			}
		}
		took = time.Since(began)
		r.locks.locked(func() { r.send(nodes) })
	}
}

// send gives what is unrouted to the nodes, releases before requests.
func (r *cluster) send(nodes map[string]*redis.Client) {
	if r.locks.ended.Err() != nil {
		return
	}
	for _, t := range r.unrouted.inOrder() {
		if node := nodes[t.key]; node != nil {
			delete(r.unrouted.pending, t)
			r.node(node, t.key).addPending(t)
		}
	}
	byNumber := func(a, b *turn) int { return cmp.Compare(a.number, b.number) }
	for _, h := range slices.SortedFunc(maps.Keys(r.unrouted.requests), byNumber) {
		if node := nodes[h.key]; node != nil {
			delete(r.unrouted.requests, h)
			h.enlist(r.node(node, h.key))
		}
	}
}

// reroute moves all that has no connection to where its nodes are looked for.
func (s *session) reroute(unrouted *session) {
	for h := range s.requests {
		h.reroute(unrouted)
	}
	for t := range s.pending {
		delete(s.pending, t)
		unrouted.addPending(t)
	}
}

// reroute has the request be asked at the node that has the slot now. Its owner, and the time
// that it has, stay.
func (h *turn) reroute(unrouted *session) {
	h.settle()
	h.state = asking
	h.request.asked, h.request.queued = false, false
	h.enlist(unrouted)
}

// channelAt is a new channel in the slot of the key.
func channelAt(key string) string {
	want := slot(key)
	for i := 0; ; i++ {
		if tag := strconv.Itoa(i); slot(tag) == want {
			return "rlock:{" + tag + "}" + rand.Text()
		}
	}
}

// hashed is the part of a key that its slot is computed from.
func hashed(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// slot is the cluster's: CRC16 (XMODEM) of the hash tag, or of the key if it has none.
func slot(key string) uint16 {
	key = hashed(key)
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}
