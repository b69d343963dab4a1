package rlock

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"net"
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
	options.ContextTimeoutEnabled = true
	options.ReadBufferSize, options.WriteBufferSize = 4096, 4096
	options.Limiter, options.PushNotificationProcessor = nil, nil
	options.ClientSideCache, options.ClientSideCacheConfig = nil, nil
	options.AutoPipelineOptions = nil
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &options
}

// open has go-redis make the connection (address, TLS, credentials, Sentinel, hooks), and
// goes on with it alone: go-redis does not touch it again before it is closed.
func open(ctx context.Context, options *redis.Options, channel, subscribe string) (*link, error) {
	conn, err := options.Dialer(ctx, options.Network, options.Addr)
	if err != nil {
		return nil, err
	}
	own := *options
	own.Dialer = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	if until, ok := ctx.Deadline(); ok {
		// It bounds what is said on the connection too, where a context alone does not.
		own.DialTimeout = time.Until(until)
		own.ReadTimeout, own.WriteTimeout = own.DialTimeout, own.DialTimeout
	}
	client := redis.NewClient(&own)
	l := &link{conn: conn, roomy: isRoomy(conn), channel: channel, end: client.Close, wake: make(chan struct{}, 1)}
	if err = client.Conn().Ping(ctx).Err(); err == nil {
		l.proof = time.Now()
		err = l.greet(ctx, subscribe)
	}
	if err != nil {
		l.end()
		conn.Close()
		return nil, err
	}
	return l, nil
}

// greet makes sure of RESP3, which go-redis does without if it is refused, and subscribes.
func (l *link) greet(ctx context.Context, subscribe string) error {
	until, _ := ctx.Deadline()
	if err := l.conn.SetDeadline(until); err != nil {
		return err
	}
	out := appendCommand(nil, "HELLO", "3")
	if _, err := l.conn.Write(appendCommand(out, subscribe, l.channel)); err != nil {
		return err
	}
	l.in = bufio.NewReaderSize(l.conn, 4096)
	for range 2 {
		reply, err := readReply(l.in)
		if err != nil {
			return err
		}
		if err, refused := reply.(replyError); refused {
			return err
		}
	}
	return l.conn.SetDeadline(time.Time{})
}

// refusal is what the server said to a connection for good, or nil if it may be tried again.
func refusal(err error) error {
	var said redis.Error
	var reply replyError
	switch {
	case errors.As(err, &reply):
	case errors.As(err, &said):
		reply = replyError(said.Error())
	default:
		return nil
	}
	switch reply.code() {
	case "NOAUTH", "WRONGPASS", "NOPERM", "NOPROTO", "DENIED":
		return reply.public()
	}
	return nil
}

func newChannel() string { return "rlock:" + rand.Text() }
