package rlock_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// A process that is silent for longer than its patience loses what somebody waits for.

// A holder is another process that has the lock "jobs", until it is told to go on. It says what
// became of it.
type holder struct {
	t       *testing.T
	process *os.Process
	in      io.Writer
	out     *bufio.Reader
}

func startHolder(t *testing.T, s *server, patience, lease time.Duration) *holder {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "RLOCK_HOLDS="+s.addr(), "RLOCK_PATIENCE="+patience.String(), "RLOCK_LEASE="+lease.String())
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, out := must(command.StdinPipe()), must(command.StdoutPipe())
	must(0, command.Start())
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	h := &holder{t, command.Process, in, bufio.NewReader(out)}
	h.says("held")
	return h
}

// says that this line comes next.
func (h *holder) says(want string) {
	h.t.Helper()
	line := make(chan string, 1)
	go func() {
		text, _ := h.out.ReadString('\n')
		line <- strings.TrimSuffix(text, "\n")
	}()
	if got := soon(h.t, want, line); got != want {
		h.t.Fatalf("it says %q, and not %q", got, want)
	}
}

// hold is what that process does: see TestMain.
func hold(addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	locks := rlock.New(client, rlock.Patience(must(time.ParseDuration(os.Getenv("RLOCK_PATIENCE")))))
	told := make(chan struct{})
	go func() {
		bufio.NewReader(os.Stdin).ReadString('\n')
		close(told)
	}()
	err := locks.Do(ctx, "jobs", func(ctx context.Context, hold *rlock.Hold) error {
		fmt.Println("held")
		select {
		case <-told:
		case <-ctx.Done():
		}
		fmt.Println(context.Cause(ctx), hold.Err())
		return nil
	}, rlock.Lease(must(time.ParseDuration(os.Getenv("RLOCK_LEASE")))))
	fmt.Println(err)
	locks.Close()
}

// calls says how often a command was called, and how often it was refused.
func (s *server) calls(command string) (calls, rejected int) {
	s.t.Helper()
	found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+).*?rejected_calls=(\d+)`).
		FindStringSubmatch(s.do("INFO commandstats").(string))
	if found == nil {
		return
	}
	return must(strconv.Atoi(found[1])), must(strconv.Atoi(found[2]))
}

// calledAgain waits until it was called n times more.
func (s *server) calledAgain(command string, n int) {
	s.t.Helper()
	before, _ := s.calls(command)
	until(s.t, fmt.Sprint(n, " times ", command), func() bool { calls, _ := s.calls(command); return calls >= before+n })
}

func TestStoppedForLongerThanItsPatience(t *testing.T) {
	s := startServer(t)
	other := startHolder(t, s, 4*time.Second, 4*time.Second)
	locks := s.locks(rlock.NoHeartbeat())
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs") })
	s.waiting("jobs", 1)
	s.calledAgain("rlock.heartbeat", 5) // longer than its patience, in which it is heard
	s.waiting("jobs", 1)
	stopped := time.Now()
	other.process.Signal(syscall.SIGSTOP)
	got := soon(t, "the lock of a process that is silent", wait)
	if took := time.Since(stopped); got.err != nil || took < time.Second || took > 20*time.Second {
		t.Fatal(got.err, took)
	}
	other.process.Signal(syscall.SIGCONT)
	other.says("rlock: jobs was lost: silent rlock: jobs was lost: silent")
	other.says("rlock: jobs was lost: silent")
	must(0, got.hold.Release(ctx))
}

func TestStoppedForLessThanItsPatience(t *testing.T) {
	s := startServer(t)
	other := startHolder(t, s, 30*time.Second, 4*time.Second)
	wait := later(func() (*rlock.Hold, error) { return s.locks().Lock(ctx, "jobs") })
	s.waiting("jobs", 1)
	other.process.Signal(syscall.SIGSTOP)
	time.Sleep(6 * time.Second)
	other.process.Signal(syscall.SIGCONT)
	s.waiting("jobs", 1)
	fmt.Fprintln(other.in, "go on")
	other.says("<nil> <nil>")
	other.says("<nil>")
	must(0, must(soon(t, "the lock", wait).hold, nil).Release(ctx))
}

func TestNobodyWaitsForWhoIsSilent(t *testing.T) {
	s := startServer(t)
	other := startHolder(t, s, 500*time.Millisecond, 4*time.Second)
	token := func() any { return s.do("RLOCK.INFO jobs").(map[any]any)["holders"].([]any)[0].(map[any]any)["token"] }
	before := token()
	other.process.Signal(syscall.SIGSTOP)
	time.Sleep(6 * time.Second)
	if token() != before {
		t.Error("it was lost")
	}
	other.process.Signal(syscall.SIGCONT)
	s.calledAgain("rlock.heartbeat", 1)
	fmt.Fprintln(other.in, "go on")
	other.says("<nil> <nil>")
	other.says("<nil>")
}

// told is the patience of each heartbeat that went through the proxy, in ms.
func (p *proxy) told() (all []int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, found := range regexp.MustCompile(`RLOCK\.HEARTBEAT\r\n\$\d+\r\n(\d+)`).FindAllSubmatch(p.said.Bytes(), -1) {
		all = append(all, must(strconv.Atoi(string(found[1]))))
	}
	return
}

func (p *proxy) tells(t *testing.T, ms int) {
	t.Helper()
	until(t, fmt.Sprint("a patience of ", ms), func() bool { all := p.told(); return len(all) > 0 && all[len(all)-1] == ms })
}

func TestWhatTheServerIsTold(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	// Before the first request; and the leases of holds without the watchdog do not count.
	must(0, must(locks.Lock(ctx, "a", rlock.NoWatchdog(), rlock.Lease(time.Hour))).Release(ctx))
	p.mutex.Lock()
	said := bytes.Clone(p.said.Bytes())
	p.mutex.Unlock()
	if bytes.Index(said, []byte("RLOCK.HEARTBEAT")) > bytes.Index(said, []byte("RLOCK.ACQUIRE\r\n$1\r\na")) {
		t.Errorf("%q", said)
	}
	if all := p.told(); fmt.Sprint(all) != "[30000]" {
		t.Error(all)
	}
	hold := must(locks.Lock(ctx, "a", rlock.Lease(40*time.Second+time.Microsecond)))
	p.tells(t, 40_001)
	must(0, hold.Renew(ctx, 50*time.Second))
	p.tells(t, 50_000)
	must(0, hold.Release(ctx))
	short := must(locks.Lock(ctx, "a", rlock.Lease(4*time.Second)))
	p.tells(t, 30_000)
	before := len(p.told())
	until(t, "more heartbeats", func() bool { return len(p.told()) > before+3 })
	must(0, short.Release(ctx))
	if pings, _ := s.calls("ping"); pings > 20 { // the test's own, and one of go-redis
		t.Error(pings, " PINGs")
	}
}

func TestPatienceShorterThanTheLease(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String(), rlock.Patience(1))
	hold := must(locks.Lock(ctx, "a", rlock.Lease(4*time.Second)))
	until(t, "heartbeats", func() bool { return len(p.told()) > 3 })
	if all := p.told(); all[0] != 300 || all[1] != 4000 || all[len(all)-1] != 4000 {
		t.Error(all)
	}
	must(0, hold.Release(ctx))
}

// Where the server is told nothing, it is sent PING.
func TestPings(t *testing.T) {
	const heartbeat, none = "RLOCK.HEARTBEAT", "RLOCK.HEARTBEET" // which the server does not know
	for name, c := range map[string]struct {
		start func(testing.TB, ...string) *server
		with  []rlock.Setting
		most  int
	}{
		"no heartbeats wanted": {startServer, []rlock.Setting{rlock.Patience(1), rlock.NoHeartbeat()}, 0},
		"no module":            {startPlainServer, nil, 0},
		"too old":              {startServer, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.start(t)
			p := startProxy(t, s)
			p.mutex.Lock()
			p.instead = [2]string{heartbeat, none}
			p.mutex.Unlock()
			locks := locksAt(t, p.Addr().String(), c.with...)
			before := 0   // the next connection may be told before this goes on
			for range 2 { // it is found out for each connection
				hold := must(locks.Lock(ctx, "a", rlock.Lease(4*time.Second)))
				s.calledAgain("ping", 4)
				must(0, hold.Err())
				asked := len(p.told()) - before
				if asked > c.most || c.most > 0 && asked == 0 {
					t.Error(asked, " heartbeats")
				}
				before += asked
				if name == "no module" {
					must(0, hold.Release(ctx))
					return
				}
				p.closeThem()
				lostWith(t, hold, "connection")
			}
		})
	}
}

func TestHeartbeatsNeedARight(t *testing.T) {
	s := startServer(t)
	s.do("ACL SETUSER ann on >secret ~* &* +@all -rlock.heartbeat")
	client := redis.NewClient(&redis.Options{Addr: s.addr(), Username: "ann", Password: "secret"})
	defer client.Close()
	locks := rlock.New(client)
	defer locks.Close()
	hold := must(locks.Lock(ctx, "a", rlock.Lease(4*time.Second)))
	s.calledAgain("ping", 4)
	must(0, hold.Err())
	if _, asked := s.calls("rlock.heartbeat"); asked < 1 || asked > 3 {
		t.Error(asked, " heartbeats")
	}
	s.do("ACL SETUSER ann +rlock.heartbeat")
	s.do("CLIENT KILL USER ann")
	lostWith(t, hold, "connection")
	next := must(locks.Lock(ctx, "a", rlock.Lease(4*time.Second)))
	s.calledAgain("rlock.heartbeat", 3)
	must(0, next.Release(ctx))
}

func TestPatienceThatIsNone(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Second} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "Patience("+d.String()+"): it has to be above 0") {
					t.Error(text)
				}
			}()
			rlock.Patience(d)
		}()
	}
}
