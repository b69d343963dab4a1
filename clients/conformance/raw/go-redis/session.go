// Locks for all goroutines of a process, by two connections (go-redis).
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Session sends its commands by one connection and is notified by another: go-redis takes a
// message on a connection that sends commands for the reply to the next one.
type Session struct {
	client   *redis.Client
	commands *redis.Conn
	messages *redis.PubSub
	channel  string
	mutex    sync.Mutex
	tags     int
	notified map[string]chan []string // by tag: what the server notifies of a request, and of its hold
	Lost     chan struct{}            // closed when the session is over, with all it held
}

// In docs/clients.md:

func Open(ctx context.Context, options redis.Options) (*Session, error) {
	client := redis.NewClient(&options) // its own, so that Close closes its connections
	s := &Session{client: client, commands: client.Conn(), notified: map[string]chan []string{}, Lost: make(chan struct{})}
	s.channel = "rlock:" + rand.Text()
	s.messages = client.Subscribe(ctx, s.channel)
	if _, err := s.messages.Receive(ctx); err != nil {
		return nil, err
	}
	// The server wants this connection to be subscribed too: to a channel where nothing comes.
	if err := s.commands.Do(ctx, "SUBSCRIBE", s.channel+":quiet").Err(); err != nil {
		return nil, err
	}
	go s.listen()
	go s.beat()
	return s, nil
}

// So far.

func (s *Session) Do(ctx context.Context, words ...any) (any, error) {
	return s.commands.Do(ctx, words...).Result()
}

// Acquire gives the token, or 0 after wait, and where the loss of the hold is notified.
func (s *Session) Acquire(ctx context.Context, key, owner string, lease, wait time.Duration, words ...any) (int64, chan []string, error) {
	s.mutex.Lock()
	s.tags++
	tag := strconv.Itoa(s.tags)
	notified := make(chan []string, 4)
	s.notified[tag] = notified
	s.mutex.Unlock()
	ask := []any{"RLOCK.ACQUIRE", key, owner, lease.Milliseconds(), "QUEUE", wait.Milliseconds()}
	ask = append(ask, "NOTIFY", s.channel, tag, "ONCE")
	reply, err := s.Do(ctx, append(ask, words...)...)
	if err != nil || reply != "QUEUED" {
		token, _ := reply.(int64)
		return token, notified, err
	}
	select {
	case message := <-notified:
		switch message[0] {
		case "granted":
			token, err := strconv.ParseInt(message[2], 10, 64)
			return token, notified, err
		case "timeout":
			return 0, notified, nil
		}
		return 0, notified, errors.New(message[2])
	case <-s.Lost:
		return 0, notified, errors.New("the session is over")
	case <-ctx.Done():
		if ended, err := s.Do(context.Background(), "RLOCK.CANCEL", key, owner); err == nil && ended == int64(0) {
			s.Do(context.Background(), "RLOCK.RELEASE", key, owner, "IFHELD") // the grant had gone out
		}
		return 0, notified, ctx.Err()
	}
}

func (s *Session) listen() {
	defer s.Close()
	for message := range s.messages.ChannelWithSubscriptions() {
		switch message := message.(type) {
		case *redis.Message:
			words := strings.SplitN(message.Payload, " ", 3)
			s.mutex.Lock()
			notified := s.notified[words[1]]
			s.mutex.Unlock()
			if notified != nil {
				notified <- words
			}
		case *redis.Subscription: // it has connected again, and may have missed something
			return
		}
	}
}

// The commands' connection is read only when there is something to send.
func (s *Session) beat() {
	for range time.Tick(time.Second) {
		if s.commands.Ping(context.Background()).Err() != nil {
			s.Close()
			return
		}
	}
}

func (s *Session) Close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	select {
	case <-s.Lost:
	default:
		close(s.Lost)
		s.messages.Close()
		s.commands.Close()
		s.client.Close()
	}
}
