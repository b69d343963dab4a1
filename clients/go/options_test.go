package rlock_test

import (
	"bufio"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// The connection has what the client's options command: a password, a database, a name, a hook.
func TestClientOptions(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	s := startServer(t, "--unixsocket", socket)
	s.do("ACL SETUSER ann on >secret ~* &rlock:* +@all")
	connected := 0
	client := redis.NewClient(&redis.Options{
		Addr: socket, Username: "ann", Password: "secret", DB: 3, ClientName: "nightly", Protocol: 2, PoolSize: 1,
		OnConnect: func(context.Context, *redis.Conn) error { connected++; return nil },
	})
	defer client.Close()
	locks := rlock.New(client)
	defer locks.Close()
	hold := must(locks.Lock(ctx, "jobs"))
	if n := must(client.Exists(ctx, "jobs").Result()); n != 1 {
		t.Error("not in the client's database")
	}
	list := s.do("CLIENT LIST TYPE pubsub").(string)
	if !strings.Contains(list, "name=nightly") || !strings.Contains(list, "user=ann") || !strings.Contains(list, "db=3") {
		t.Error(list)
	}
	if connected != 2 { // once for the client's own
		t.Error("OnConnect was called ", connected, " times")
	}
	must(0, hold.Release(ctx))
	if must(client.Ping(ctx).Result()) != "PONG" {
		t.Error("the program's client does not work any more")
	}
}

// Behind Sentinel the session goes to the master, also after a failover.
func TestSentinel(t *testing.T) {
	s := startServer(t)
	replica := startServer(t, "--replicaof", "127.0.0.1 "+strings.TrimPrefix(s.addr(), "127.0.0.1:"))
	until(t, "the replica", func() bool {
		return strings.Contains(replica.do("INFO replication").(string), "master_link_status:up")
	})
	port := freePort()
	dir := t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := "port " + itoa(port) + "\ndir " + dir + "\nsentinel monitor main 127.0.0.1 " + itoa(s.port) +
		" 1\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
	must(0, writeFile(config, text))
	sentinel := exec.Command(binary(), config, "--sentinel")
	sentinel.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(0, sentinel.Start())
	t.Cleanup(func() { sentinel.Process.Kill(); sentinel.Wait() })
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"127.0.0.1:" + itoa(port)}})
	defer client.Close()
	until(t, "the sentinel", func() bool { return client.Ping(ctx).Err() == nil })
	admin := redis.NewSentinelClient(&redis.Options{Addr: "127.0.0.1:" + itoa(port)})
	defer admin.Close()
	until(t, "the sentinel to know the replica", func() bool {
		all, _ := admin.Replicas(ctx, "main").Result()
		return len(all) == 1 && all[0]["flags"] == "slave"
	})
	locks := rlock.New(client)
	defer locks.Close()
	hold := must(locks.Lock(ctx, "held"))
	s.kill()
	lostWith(t, hold, "connection")
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	next, err := locks.Lock(bounded, "next")
	if err != nil || next.Err() != nil {
		t.Fatal(err)
	}
	if replica.mode("next") != "exclusive" {
		t.Error("not at the new master")
	}
}

func TestAcks(t *testing.T) {
	s := startServer(t)
	_, err := s.locks().TryLock(ctx, "none", rlock.Acks(1, 50*time.Millisecond))
	var refused *rlock.RefusedError
	if !errors.As(err, &refused) || refused.Code != "NOREPLICAS" {
		t.Fatal(err)
	}
	s.free("none")
	replica := startServer(t, "--replicaof", "127.0.0.1 "+itoa(s.port))
	until(t, "the replica", func() bool {
		return strings.Contains(replica.do("INFO replication").(string), "master_link_status:up")
	})
	locks := s.locks()
	for _, opts := range [][]rlock.Option{nil, {rlock.NoWatchdog()}, {rlock.Read()}, {rlock.Limit(3)}} {
		hold := must(locks.TryLock(ctx, "jobs", append(opts, rlock.Acks(1, 10*time.Second))...))
		if n := must(replica.admin.Exists(ctx, "jobs").Result()); n != 1 {
			t.Error("the replica does not have it")
		}
		must(0, hold.Release(ctx))
	}
	many := must(locks.LockMany(ctx, []string{"a", "b"}, rlock.Acks(1, 10*time.Second)))
	must(0, many.Release(ctx))
	replica.signal(syscall.SIGSTOP)
	defer replica.signal(syscall.SIGCONT)
	_, err = locks.TryLock(ctx, "jobs", rlock.Acks(1, 100*time.Millisecond))
	isErr(t, err, rlock.ErrRefused)
	s.free("jobs")
}

func TestReplies(t *testing.T) {
	for text, want := range map[string]string{
		"+OK\r\n": "OK", ":-5\r\n": "-5", "_\r\n": "<nil>", "$-1\r\n": "<nil>", "*-1\r\n": "<nil>", "$0\r\n\r\n": "",
		"$4\r\na\r\nb\r\n": "a\r\nb", "=7\r\ntxt:abc\r\n": "abc", "%1\r\n+a\r\n:1\r\n": "[a 1]", "-ERR no\r\n": "ERR no",
		"!5\r\nERR x\r\n": "ERR x", "|1\r\n+a\r\n:1\r\n+b\r\n": "b", ">2\r\n+a\r\n+b\r\n": "[a b]", "#t\r\n": "t",
		"*2\r\n*1\r\n:1\r\n_\r\n": "[[1] <nil>]",
	} {
		reply, err := rlock.ReadReply(bufio.NewReader(strings.NewReader(text)))
		if got := sprint(reply); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "+OK", "?\r\n", "\r\n", ":x\r\n", "$3\r\nab", "*2\r\n:1\r\n", "$x\r\n"} {
		if reply, err := rlock.ReadReply(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q: %q", text, reply)
		}
	}
}
