package rlock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An acker waits for replicas, over a connection of its own: WAIT holds up the one that says
// it, and goes by the last write of that connection. So all holds that wait for acks at a
// moment are renewed there, which changes nothing, and then one WAIT is for all of them.
type acker struct {
	session *session
	queue   []*Hold
	running bool
	link    *link
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
	ctx, cancel := context.WithTimeout(a.session.locks.closing, a.session.locks.timeout+batch[0].terms.ackTime)
	defer cancel()
	replies, err := a.ask(ctx, l, batch)
	if err != nil {
		a.disconnect()
	}
	defer a.session.locks.lock()()
	for i, h := range batch {
		switch {
		case h.state != granted:
		case err != nil:
			h.reject(&ConnectionError{err})
		default:
			h.acked(replies[i], replies[len(batch)])
		}
	}
}

// ask renews the holds, and says how many replicas have that.
func (a *acker) ask(ctx context.Context, l *link, batch []*Hold) ([]any, error) {
	if err := a.connect(ctx, l); err != nil {
		return nil, err
	}
	var commands [][]string
	for _, h := range batch {
		commands = append(commands, h.renewal(h.terms.lease))
	}
	t := batch[0].terms
	return a.link.ask(ctx, append(commands, []string{"WAIT", strconv.Itoa(t.acks), ms(t.ackTime)})...)
}

func (h *Hold) acked(renewal, replicas any) {
	refused, isRefused := renewal.(replyError)
	failed, isFailed := replicas.(replyError)
	n, _ := replicas.(int64)
	switch {
	case isRefused && refused.code() == "NOTHELD":
		h.lose("expired")
	case isRefused:
		h.reject(refused.public())
	case isFailed:
		h.reject(failed.public())
	case n < int64(h.terms.acks):
		h.reject(&RefusedError{"NOREPLICAS", fmt.Sprintf("%d of %d replicas have it", n, h.terms.acks)})
	default:
		h.give()
	}
}

// connect has a connection to the very run of the server that the session's link is to.
func (a *acker) connect(ctx context.Context, l *link) error {
	run, err := l.runID(ctx)
	if err != nil || a.link != nil && a.link.run == run {
		return err
	}
	a.disconnect()
	if a.link, err = a.session.connect(ctx, "", ""); err != nil {
		return err
	}
	replies, err := a.link.ask(ctx, []string{"INFO", "server"})
	if err != nil {
		return err
	}
	info, _ := replies[0].(string)
	if a.link.run = runOf(info); a.link.run != run {
		return fmt.Errorf("another server answers at %s", a.session.options.Addr)
	}
	return nil
}

func (a *acker) disconnect() {
	if a.link != nil {
		a.link.end()
		a.link = nil
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
