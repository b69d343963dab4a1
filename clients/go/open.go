package rlock

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ownOptions are the client's, for one connection that nobody else uses.
func ownOptions(client *redis.Client) *redis.Options {
	options := *client.Options()
	options.Protocol = 3
	options.PoolSize, options.MinIdleConns, options.MaxActiveConns = 1, 0, 0
	options.MaxRetries, options.DialerRetries = -1, 1
	options.PoolTimeout, options.ConnMaxLifetime, options.ConnMaxIdleTime = 0, -1, -1
	options.ContextTimeoutEnabled = true
	options.ReadBufferSize, options.WriteBufferSize = 4096, 4096
	options.Limiter, options.PushNotificationProcessor = nil, nil
	options.ClientSideCache, options.ClientSideCacheConfig = nil, nil
	options.AutoPipelineOptions = nil
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &options
}

// apart does what the program has a part in: by its Dialer, its hooks, its OnConnect, its
// credentials. That runs by itself, may call these Locks, and is waited for no longer than ctx,
// however it ends. What comes later is dropped.
func apart[T any](ctx context.Context, l *Locks, drop func(T), do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome)
	begun := l.goes(func() {
		out := outcome{err: errEnded}
		defer func() {
			select {
			case done <- out:
			case <-ctx.Done():
				if out.err == nil {
					drop(out.value)
				}
			}
		}()
		out.value, out.err = do()
	})
	var none T
	if !begun {
		return none, ErrClosed
	}
	select {
	case out := <-done:
		return out.value, out.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

var errEnded = errors.New("the program's own code ended the goroutine that connects")

// connect opens a connection, apart.
func (s *session) connect(ctx context.Context, channel, subscribe string) (*link, error) {
	return apart(ctx, s.locks, func(l *link) { l.end() }, func() (*link, error) {
		return open(ctx, s.options, channel, subscribe, s.locks.strict)
	})
}

// open has go-redis make the connection (address, TLS, credentials, Sentinel, hooks), and
// goes on with it alone: go-redis does not touch it again before it is closed.
func open(ctx context.Context, options *redis.Options, channel, subscribe string, strict bool) (*link, error) {
	conn, err := options.Dialer(ctx, options.Network, options.Addr)
	if err != nil {
		return nil, err
	}
	own := *options
	own.Dialer = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	if until, ok := ctx.Deadline(); ok {
		// It bounds what is sent on the connection too, where a context alone does not.
		own.DialTimeout = time.Until(until)
		own.ReadTimeout, own.WriteTimeout = own.DialTimeout, own.DialTimeout
	}
	client := redis.NewClient(&own)
	opened := false
	defer func() {
		if !opened { // or the program's OnConnect has ended its goroutine
			client.Close()
			conn.Close()
		}
	}()
	l := &link{conn: conn, roomy: isRoomy(conn), channel: channel, end: client.Close,
		wake: make(chan struct{}, 1), resume: make(chan struct{}, 1)}
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		l.lends = true
	}
	if err = client.Conn().Ping(ctx).Err(); err == nil {
		l.proof = clock()
		err = l.greet(ctx, options.ClientName, subscribe, strict)
	}
	opened = err == nil
	if !opened {
		return nil, err
	}
	return l, nil
}

// greet makes sure of RESP3, which go-redis does without if it is refused, and of the kind of
// server. It gives a connection a name that has none, if the user may, subscribes, and learns what the
// server has for locks.
func (l *link) greet(ctx context.Context, name, subscribe string, strict bool) error {
	l.in = bufio.NewReaderSize(l.conn, 4096)
	greetings := [][]string{{"HELLO", "3"}, {"CLIENT", "SETNAME", cmp.Or(name, ownName)}}
	if subscribe != "" {
		greetings = append(greetings, []string{subscribe, l.channel}, askByInfo)
	}
	replies, err := l.ask(ctx, greetings...)
	if err != nil {
		return err
	}
	for i, reply := range replies {
		if err, refused := reply.(replyError); refused && i != 1 && i != 3 {
			if err.unknown() && i == 2 && subscribe == "SSUBSCRIBE" {
				err = noShards
			}
			if err.unknown() || err == noShards {
				return final{err} // it is too old
			}
			return err
		}
	}
	if err := wrongKind(replies[0], subscribe); err != nil || subscribe == "" {
		return err
	}
	return l.learn(ctx, replies[3], strict)
}

const noShards replyError = "ERR a cluster needs Redis 7.0 or newer, or Valkey: this server has no sharded pub/sub"

// ask says commands on a connection that nobody reads yet, and gives the replies.
func (l *link) ask(ctx context.Context, commands ...[]string) ([]any, error) {
	until, _ := ctx.Deadline()
	if err := l.conn.SetDeadline(until); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { l.conn.SetDeadline(time.Unix(1, 0)) })()
	var out []byte
	for _, words := range commands {
		out = appendCommand(out, words...)
	}
	if _, err := l.conn.Write(out); err != nil {
		return nil, err
	}
	replies := make([]any, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = readReply(l.in); err != nil {
			return nil, err
		}
	}
	return replies, l.conn.SetDeadline(time.Time{})
}

// wrongKind looks at the reply to HELLO: a node of a cluster takes another client.
func wrongKind(hello any, subscribe string) error {
	facts, _ := hello.([]any)
	for i := 0; i+1 < len(facts); i += 2 {
		if facts[i] == "mode" && facts[i+1] == "cluster" && subscribe == "SUBSCRIBE" {
			return replyError("CLUSTER this is a node of a cluster: give rlock.NewCluster a *redis.ClusterClient")
		}
	}
	return nil
}

// ownName is what CLIENT LIST calls a connection, unless the client has a name.
const ownName = "rlock-go-0.9.0"

// refusal is what the server said to a connection for good, or nil if it may be tried again.
func refusal(err error) error {
	var said redis.Error
	var reply replyError
	var last final
	switch {
	case errors.As(err, &last):
		return last.public()
	case errors.As(err, &reply):
	case errors.As(err, &said):
		reply = replyError(said.Error())
		if strings.Contains(said.Error(), "cluster support disabled") {
			reply = "CLUSTER this is no node of a cluster: give rlock.New a *redis.Client"
		}
	default:
		return nil
	}
	switch reply.code() {
	case "NOAUTH", "WRONGPASS", "NOPERM", "NOPROTO", "DENIED", "CLUSTER":
		return reply.public()
	}
	return nil
}

func newChannel() string { return "rlock:" + rand.Text() }
