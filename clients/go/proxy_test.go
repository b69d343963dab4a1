package rlock_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	rlock "rlock.invalid/clients/go"
)

// A proxy that closes both ends once the server has answered the next request with a word,
// whose answer is lost. Or it lets no answers through, at once or from the next request with
// a word on, or only half of the next answer.
type proxy struct {
	net.Listener
	server string
	mutex  sync.Mutex
	flow   *sync.Cond
	cut    string
	stop   string
	halve  bool
	holds  bool
	cuts   int
	conns  []net.Conn // all that there were
	said   bytes.Buffer
	pieces []string // the same, as it came
	// The server gets another word of the same length, and the client does not see that.
	instead [2]string
}

func startProxy(t testing.TB, s *server) *proxy {
	p := &proxy{Listener: must(net.Listen("tcp", "127.0.0.1:0")), server: s.addr()}
	p.flow = sync.NewCond(&p.mutex)
	go func() {
		for {
			client, err := p.Accept()
			if err != nil {
				return
			}
			p.mutex.Lock()
			p.conns = append(p.conns, client)
			p.mutex.Unlock()
			go p.serve(client)
		}
	}()
	t.Cleanup(func() {
		p.Close()
		p.hold(false)
	})
	return p
}

func (p *proxy) serve(client net.Conn) {
	p.mutex.Lock()
	to := p.server
	p.mutex.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		client.Close()
		return
	}
	var cutting bool
	go func() {
		defer client.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			from := 0
			p.mutex.Lock()
			if p.halve && n > 1 {
				from, p.halve, p.holds = n/2, false, true
				client.Write(buffer[:from])
			}
			for p.holds {
				p.flow.Wait()
			}
			if cutting {
				p.cuts++
			}
			cut := cutting
			p.mutex.Unlock()
			if err != nil || cut {
				server.Close()
				return
			}
			client.Write(p.replaced(buffer[from:n], 1, 0))
		}
	}()
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		p.mutex.Lock()
		if p.cut != "" && bytes.Contains(buffer[:n], []byte(p.cut)) {
			cutting, p.cut = true, ""
		}
		if p.stop != "" && bytes.Contains(buffer[:n], []byte(p.stop)) {
			p.holds, p.stop = true, ""
		}
		p.said.Write(buffer[:n])
		p.pieces = append(p.pieces, string(buffer[:n]))
		p.mutex.Unlock()
		if n > 0 {
			server.Write(p.replaced(buffer[:n], 0, 1))
		}
		if err != nil {
			if err == io.EOF {
				server.Close()
			}
			return
		}
	}
}

func (p *proxy) replaced(data []byte, from, to int) []byte {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return bytes.ReplaceAll(data, []byte(p.instead[from]), []byte(p.instead[to]))
}

func (p *proxy) cutNext(word string) {
	p.mutex.Lock()
	p.cut = word
	p.mutex.Unlock()
}

// holdFrom lets nothing through from the next request with the word on; it returns when that came.
func (p *proxy) holdFrom(t testing.TB, word string, act func()) {
	t.Helper()
	p.mutex.Lock()
	p.stop = word
	p.mutex.Unlock()
	act()
	until(t, word, func() bool { p.mutex.Lock(); defer p.mutex.Unlock(); return p.stop == "" })
}

// holdHalf lets half of the next answer through, and nothing after that.
func (p *proxy) holdHalf() {
	p.mutex.Lock()
	p.halve = true
	p.mutex.Unlock()
}

func (p *proxy) hold(on bool) {
	p.mutex.Lock()
	p.holds = on
	p.flow.Broadcast()
	p.mutex.Unlock()
}

// closeThem closes what the clients have, and says how many connections there were.
func (p *proxy) closeThem() (n int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, conn := range p.conns {
		conn.Close()
	}
	return len(p.conns)
}

// closeAll closes what the clients have, and returns when they have connected again.
func (p *proxy) closeAll(t testing.TB) {
	t.Helper()
	n := p.closeThem()
	until(t, "the next connection", func() bool {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		return len(p.conns) > n
	})
}

func (p *proxy) hasCut(t testing.TB, n int) {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.cuts != n {
		t.Fatal(p.cuts, " connections were cut, and not ", n)
	}
}

func TestLostReplies(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	cut := 0
	for _, opts := range [][]rlock.Option{
		nil, {rlock.NoWatchdog()}, {rlock.Read()}, {rlock.Limit(3), rlock.Permits(2)},
	} {
		p.cutNext("RLOCK.ACQUIRE")
		hold := must(locks.TryLock(ctx, "jobs", opts...))
		p.hasCut(t, cut+1)
		holders := s.do("RLOCK.INFO jobs").(map[any]any)["holders"].([]any)
		if len(holders) != 1 || holders[0].(map[any]any)["token"] != hold.Token {
			t.Fatal(holders, hold)
		}
		p.cutNext("RLOCK.RELEASE")
		must(0, hold.Release(ctx))
		s.free("jobs")
		s.do("RLOCK.ACQUIRE jobs other 60000")
		p.cutNext("RLOCK.ACQUIRE")
		wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", opts...) })
		until(t, "the cut", func() bool { p.mutex.Lock(); defer p.mutex.Unlock(); return p.cuts == cut+3 })
		s.waiting("jobs", 1)
		s.do("RLOCK.RELEASE jobs other")
		got := soon(t, "the grant", wait)
		if got.err != nil {
			t.Fatal(got.err)
		}
		must(0, got.hold.Release(ctx))
		s.free("jobs")
		cut += 3
	}
	plain := must(locks.TryLock(ctx, "jobs", rlock.NoWatchdog()))
	p.cutNext("RLOCK.RENEW")
	must(0, plain.Renew(ctx, time.Minute))
	p.hasCut(t, cut+1)
	p.cutNext("RLOCK.MACQUIRE")
	many := must(locks.LockMany(ctx, []string{"a", "b"}, rlock.Wait(0)))
	p.cutNext("RLOCK.MRELEASE")
	must(0, many.Release(ctx))
	p.hasCut(t, cut+3)
	s.free("a")
	s.free("b")
	watched := must(locks.TryLock(ctx, "a"))
	p.cutNext("RLOCK.RENEW")
	isErr(t, watched.Renew(ctx, time.Minute), rlock.ErrLost)
	lostWith(t, watched, "connection")
}

// The reply to CANCEL is lost, and it is retried.
func TestCancelIsCut(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	s.do("RLOCK.ACQUIRE jobs other 60000")
	waits, cancel := context.WithCancel(ctx)
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(waits, "jobs") })
	s.waiting("jobs", 1)
	p.cutNext("RLOCK.CANCEL")
	cancel()
	isErr(t, soon(t, "the end", wait).err, context.Canceled)
	s.do("RLOCK.RELEASE jobs other")
	s.free("jobs")
}

func TestGrantCrossesCancel(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	for i := range 20 {
		for _, opts := range [][]rlock.Option{nil, {rlock.NoWatchdog(), rlock.Lease(time.Minute)}} {
			key := fmt.Sprintf("jobs:%d:%d", i, len(opts))
			s.do("RLOCK.ACQUIRE " + key + " other 60000")
			waits, cancel := context.WithCancel(ctx)
			wait := later(func() (*rlock.Hold, error) { return locks.Lock(waits, key, opts...) })
			s.waiting(key, 1)
			p.hold(true)
			s.do("RLOCK.RELEASE " + key + " other") // the grant is on its way
			cancel()
			isErr(t, soon(t, "the end", wait).err, context.Canceled)
			p.hold(false)
			s.free(key)
		}
	}
}

// The grant of a plain lease is lost with its connection, and nobody wants it any more.
func TestGrantIsLostWithItsConnection(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	for _, first := range []string{"cancel", "close"} {
		key := "jobs:" + first
		s.do("RLOCK.ACQUIRE " + key + " other 60000")
		waits, cancel := context.WithCancel(ctx)
		wait := later(func() (*rlock.Hold, error) {
			return locks.Lock(waits, key, rlock.NoWatchdog(), rlock.Lease(time.Minute))
		})
		s.waiting(key, 1)
		p.hold(true) // the next connection does not come about before it is let go
		s.do("RLOCK.RELEASE " + key + " other")
		if first == "close" {
			p.closeAll(t)
		}
		cancel()
		isErr(t, soon(t, "the end", wait).err, context.Canceled)
		if first == "cancel" {
			p.closeAll(t)
		}
		if s.mode(key) != "exclusive" {
			t.Error("the grant was not lost")
		}
		p.hold(false)
		s.free(key)
	}
}

// The server does not notice the end of a connection that the proxy keeps.
func TestSilence(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	hold := must(locks.Lock(ctx, "jobs", rlock.Lease(3*time.Second)))
	p.hold(true)
	lostWith(t, hold, "connection")
	p.hold(false)
	s.free("jobs")
}
