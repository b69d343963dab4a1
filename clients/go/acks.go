package rlock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// An acker waits for replicas, over a connection of its own: WAIT holds up the one that says
// it, and goes by the last write of that connection. So all holds that wait for acks at a
// moment are renewed there, which changes nothing, and then one WAIT is for all of them.
type acker struct {
	session *session
	queue   []*Hold
	running bool
	client  *redis.Client
	conn    *redis.Conn
	run     string
}

func (a *acker) add(h *Hold) {
	a.queue = append(a.queue, h)
	if !a.running {
		a.running = true
		a.session.locks.group.Go(a.work)
	}
}

func (a *acker) work() {
	for {
		var batch, rest []*Hold
		var l *link
		a.session.locks.locked(func() {
			for _, h := range a.queue {
				switch {
				case h.state != granted:
				case len(batch) == 0 || h.terms.acks == batch[0].terms.acks && h.terms.ackTime == batch[0].terms.ackTime:
					batch = append(batch, h)
				default:
					rest = append(rest, h)
				}
			}
			a.queue, l = rest, a.session.link
			a.running = len(batch) > 0
		})
		if len(batch) == 0 {
			return
		}
		a.serve(l, batch)
	}
}

// serve waits for the replicas, and tells the holds.
func (a *acker) serve(l *link, batch []*Hold) {
	t := batch[0].terms
	ctx, cancel := context.WithTimeout(a.session.locks.closing, a.session.locks.timeout+t.ackTime)
	defer cancel()
	renewals := make([]*redis.Cmd, len(batch))
	var wait *redis.Cmd
	err := a.connect(ctx, l)
	if err == nil {
		pipe := a.conn.Pipeline()
		for i, h := range batch {
			renewals[i] = pipe.Do(ctx, anys(h.renewal(h.terms.lease))...)
		}
		wait = pipe.Do(ctx, "WAIT", t.acks, ms(t.ackTime))
		pipe.Exec(ctx) // each command has its own error
		err = wait.Err()
	}
	if err != nil {
		a.disconnect()
	}
	defer a.session.locks.lock()()
	for i, h := range batch {
		if h.state != granted {
			continue
		}
		if err != nil {
			h.reject(&ConnectionError{err})
			continue
		}
		h.acked(renewals[i].Err(), wait)
	}
}

func (h *Hold) acked(renewal error, wait *redis.Cmd) {
	n, _ := wait.Int()
	switch {
	case renewal != nil && strings.HasPrefix(renewal.Error(), "NOTHELD"):
		h.lose("expired")
	case renewal != nil:
		h.reject(replyError(renewal.Error()).public())
	case n < h.terms.acks:
		h.reject(&RefusedError{"NOREPLICAS", fmt.Sprintf("%d of %d replicas have it", n, h.terms.acks)})
	default:
		h.give()
	}
}

// connect has a connection to the very run of the server that the session's link is to.
func (a *acker) connect(ctx context.Context, l *link) error {
	run, err := l.runID(ctx)
	if err != nil || a.conn != nil && a.run == run {
		return err
	}
	a.disconnect()
	options := *a.session.options
	options.ReadTimeout = -1 // the context bounds it
	a.client = redis.NewClient(&options)
	a.conn = a.client.Conn()
	info, err := a.conn.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if a.run = runOf(info); a.run != run {
		return fmt.Errorf("another server answers at %s", options.Addr)
	}
	return nil
}

func (a *acker) disconnect() {
	if a.client != nil {
		a.conn.Close()
		a.client.Close()
		a.client, a.conn = nil, nil
	}
}

// runID asks which run of which server the link is to.
func (l *link) runID(ctx context.Context) (string, error) {
	if l == nil {
		return "", errBroken
	}
	told := make(chan any, 1)
	l.session.locks.locked(func() {
		if l.run != "" {
			told <- l.run
			return
		}
		l.send(func(reply any, _ time.Time) {
			if info, ok := reply.(string); ok {
				l.run = runOf(info)
				reply = l.run
			}
			told <- reply
		}, "INFO", "server")
	})
	select {
	case reply := <-told:
		switch reply := reply.(type) {
		case string:
			return reply, nil
		case error:
			return "", reply
		}
		return "", errBroken
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func runOf(info string) string {
	_, run, _ := strings.Cut(info, "run_id:")
	run, _, _ = strings.Cut(run, "\r")
	return run
}

func anys(words []string) []any {
	all := make([]any, len(words))
	for i, word := range words {
		all[i] = word
	}
	return all
}
