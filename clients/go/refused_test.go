package rlock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// atOnce is what comes of a request that could take a minute.
func atOnce(t *testing.T, code, text string, acquire func(...rlock.Option) (*rlock.Hold, error)) {
	t.Helper()
	for _, opts := range [][]rlock.Option{nil, {rlock.Wait(0)}, {rlock.Wait(time.Minute)}} {
		got := soon(t, "the refusal", later(func() (*rlock.Hold, error) { return acquire(opts...) }))
		var refused *rlock.RefusedError
		if !errors.As(got.err, &refused) || refused.Code != code || !strings.Contains(got.err.Error(), text) {
			t.Errorf("%v, and not %s %s", got.err, code, text)
		}
	}
}

// What can never work is refused at once, with what to do about it.
func TestWrongServer(t *testing.T) {
	minute := rlock.Timeout(time.Minute)
	for _, args := range [][]string{nil, {"--cluster-enabled", "yes"}} {
		s := startPlainServer(t, args...)
		locks := s.locks(minute, rlock.NeedModule())
		if args == nil {
			atOnce(t, "ERR", "the server has no rlock module: load librlock.so", func(opts ...rlock.Option) (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", opts...) })
			cluster := rlock.NewCluster(redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr()}}), minute, rlock.NeedModule())
			t.Cleanup(func() { cluster.Close() })
			atOnce(t, "CLUSTER", "give rlock.New a *redis.Client", func(opts ...rlock.Option) (*rlock.Hold, error) { return cluster.Lock(ctx, "jobs", opts...) })
			continue
		}
		atOnce(t, "CLUSTER", "give rlock.NewCluster a *redis.ClusterClient", func(opts ...rlock.Option) (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", opts...) })
	}
	defer func() {
		if text, _ := recover().(string); text != "rlock: Timeout(0s): it has to be above 0" {
			t.Error(text)
		}
	}()
	rlock.Timeout(0)
}

func TestUsersWithoutRights(t *testing.T) {
	c := startCluster(t)
	for _, user := range []struct{ rules, code string }{
		{"on >other ~* &* +@all", "WRONGPASS"}, {"on >secret ~* resetchannels +@all", "NOPERM"},
		{"on >secret ~* &* +@all -ssubscribe -subscribe", "NOPERM"}, {"on >secret ~other &* +@all", "NOPERM"},
		{"on >secret ~* &* +@all -rlock.acquire", "NOPERM"},
	} {
		s := startServer(t)
		for _, node := range append(c.nodes, s) {
			node.do("ACL SETUSER ann reset " + user.rules)
		}
		one := redis.NewClient(&redis.Options{Addr: s.addr(), Username: "ann", Password: "secret"})
		many := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.nodes[0].addr()}, Username: "ann", Password: "secret"})
		for _, locks := range []*rlock.Locks{rlock.New(one, rlock.Timeout(time.Minute)), rlock.NewCluster(many, rlock.Timeout(time.Minute))} {
			t.Cleanup(func() { locks.Close() })
			atOnce(t, user.code, "", func(opts ...rlock.Option) (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", opts...) })
		}
	}
}

func TestConnectionHasAName(t *testing.T) {
	s := startServer(t)
	must(s.locks().Lock(ctx, "named"))
	if list := s.do("CLIENT LIST TYPE pubsub").(string); !strings.Contains(list, " name=rlock-go-") {
		t.Error(list)
	}
	s.do("ACL SETUSER ann on >secret ~* &rlock:* +@all -client")
	client := redis.NewClient(&redis.Options{Addr: s.addr(), Username: "ann", Password: "secret"})
	locks := rlock.New(client)
	defer locks.Close()
	must(0, must(locks.Lock(ctx, "jobs")).Release(ctx))
}

func TestWhoHasIt(t *testing.T) {
	s := startServer(t)
	locks, other := s.locks(), s.locks()
	hold := must(locks.Lock(ctx, "jobs"))
	for _, c := range []struct {
		locks  *rlock.Locks
		heldBy string
	}{{locks, hold.Owner}, {other, ""}} {
		_, err := c.locks.LockMany(ctx, []string{"free", "jobs"}, rlock.Wait(20*time.Millisecond))
		var taken *rlock.NotAcquiredError
		if !errors.As(err, &taken) || taken.HeldBy != c.heldBy {
			t.Errorf("%#v", err)
		}
	}
	must(0, hold.Release(ctx))
}

// Names are bytes: those that are no UTF-8 are names too, and each is another.
func TestNamesAreBytes(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	for _, key := range []string{"\xff", "\xfe", "\xed\xa0\x80", "\ufffd", " ", "\x00"} {
		must(locks.TryLock(ctx, key))
	}
	if n := s.do("DBSIZE"); n != int64(6) {
		t.Error(n)
	}
}

// A server that was in the middle of a wait when it stopped has not said that somebody has it.
func TestServerStopsDuringAWait(t *testing.T) {
	s := startServer(t)
	locks := s.locks(rlock.Timeout(5 * time.Second))
	s.do("RLOCK.ACQUIRE jobs other 60000")
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", rlock.Wait(10*time.Second)) })
	s.waiting("jobs", 1)
	s.signal(syscall.SIGSTOP)
	isErr(t, soon(t, "the end", wait).err, rlock.ErrConnection)
	s.signal(syscall.SIGCONT)
	s.waiting("jobs", 0)
}

// The limits of the program's client are not those of the session, which has its leases'.
func TestLimitsOfTheClient(t *testing.T) {
	s := startServer(t)
	for name, options := range map[string]redis.Options{
		"read and write": {ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond},
		"contexts":       {ContextTimeoutEnabled: true, ReadTimeout: 100 * time.Millisecond},
		"dial":           {DialTimeout: 200 * time.Millisecond, DialerRetries: 1},
		"pool":           {PoolSize: 1, PoolTimeout: time.Millisecond, MaxActiveConns: 1, MinIdleConns: 1},
		"age":            {ConnMaxLifetime: 50 * time.Millisecond, ConnMaxIdleTime: 50 * time.Millisecond},
		"retries":        {MaxRetries: 5, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: time.Millisecond},
		"protocol":       {Protocol: 2, ReadBufferSize: 32, WriteBufferSize: 32},
	} {
		t.Run(name, func(t *testing.T) {
			options.Addr = s.addr()
			client := redis.NewClient(&options)
			defer client.Close()
			locks := rlock.New(client)
			defer locks.Close()
			hold := must(locks.Lock(ctx, "jobs", rlock.Lease(30*time.Second)))
			plain := must(locks.Lock(ctx, "plain", rlock.NoWatchdog(), rlock.Lease(30*time.Second)))
			wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", rlock.Lease(30*time.Second)) })
			s.waiting("jobs", 1)
			s.signal(syscall.SIGSTOP)
			renewed := make(chan error, 1)
			go func() { renewed <- hold.Renew(ctx, 30*time.Second) }()
			time.Sleep(700 * time.Millisecond)
			s.signal(syscall.SIGCONT)
			must(0, soon(t, "the renewal", renewed))
			must(0, errors.Join(hold.Err(), plain.Err(), plain.Release(ctx), hold.Release(ctx)))
			must(0, must(soon(t, "the wait", wait).hold, nil).Release(ctx))
		})
	}
}

// A server that is silent for longer than that is lost with the shortest lease, and not before.
func TestSilentForLessThanALease(t *testing.T) {
	s := startServer(t)
	hold := must(s.locks().Lock(ctx, "jobs", rlock.Lease(time.Minute)))
	s.signal(syscall.SIGSTOP)
	time.Sleep(12 * time.Second)
	s.signal(syscall.SIGCONT)
	must(0, hold.Renew(ctx, time.Minute))
	must(0, hold.Release(ctx))
}

// certificate is one for 127.0.0.1 that is its own authority: its file, that of its key, and a
// pool with it.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rlock test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		must(0, writeFile(path, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))))
		return path
	}
	pool = x509.NewCertPool()
	pool.AddCert(must(x509.ParseCertificate(der)))
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private))), pool
}

func TestTLS(t *testing.T) {
	cert, key, right := certificate(t)
	_, _, wrong := certificate(t)
	port := freePort()
	s := startServer(t, "--tls-port", itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	over := func(config *tls.Config) *rlock.Locks {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + itoa(port), TLSConfig: config})
		locks := rlock.New(client, rlock.Timeout(4*time.Second))
		t.Cleanup(func() { locks.Close(); client.Close() })
		return locks
	}
	locks := over(&tls.Config{RootCAs: right})
	hold := must(locks.Lock(ctx, "jobs"))
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs") })
	s.waiting("jobs", 1)
	must(0, hold.Release(ctx))
	next := soon(t, "the grant", wait).hold
	s.do("RLOCK.FORCE jobs")
	lostWith(t, next, "forced")
	next = must(locks.Lock(ctx, "jobs"))
	s.do("CLIENT KILL TYPE pubsub")
	lostWith(t, next, "connection")
	must(0, must(locks.Lock(ctx, "jobs", rlock.Wait(10*time.Second))).Release(ctx))
	for _, config := range []*tls.Config{{}, {RootCAs: wrong}, {RootCAs: right, ServerName: "other.example"}} {
		_, err := over(config).TryLock(ctx, "jobs")
		isErr(t, err, rlock.ErrConnection)
		if !strings.Contains(err.Error(), "certificate") {
			t.Error(err)
		}
	}
	_, err := locksAt(t, "127.0.0.1:"+itoa(port), rlock.Timeout(500*time.Millisecond)).TryLock(ctx, "jobs")
	isErr(t, err, rlock.ErrConnection)
}

// In a cluster that does not answer, the end of the context and Close are obeyed at once.
func TestClusterThatDoesNotAnswer(t *testing.T) {
	s := startServer(t, "--cluster-enabled", "yes")
	locks := rlock.NewCluster(redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr()}}), rlock.Timeout(time.Minute))
	s.signal(syscall.SIGSTOP)
	defer s.signal(syscall.SIGCONT)
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	first := later(func() (*rlock.Hold, error) { return locks.Lock(bounded, "a") })
	second := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "b") })
	isErr(t, soon(t, "the end", first).err, context.DeadlineExceeded)
	go locks.Close()
	isErr(t, soon(t, "the end", second).err, rlock.ErrClosed)
	if took := time.Since(began); took > 20*time.Second {
		t.Error("it took ", took)
	}
}
