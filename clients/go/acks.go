package rlock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An acker waits for replicas, over a connection of its own: WAIT holds up the one that says
// it, and goes by the last write of that connection. So all holds that wait for acks at a
// moment are renewed there, which changes nothing, and then WAIT is for all of them, as often as it
// takes.
type acker struct {
	session *session
	queue   []*acking
	running bool
	link    *link
}

// An acking is a hold that waits for replicas.
type acking struct {
	hold  *turn
	link  *link // that it was granted on, with
	tag   uint64
	over  *link // which it was renewed over
	until time.Time
}

// Longer than this no WAIT holds up the connection: who comes meanwhile is not kept.
const slice = 100 * time.Millisecond

func (a *acker) add(h *turn) {
	a.queue = append(a.queue, &acking{hold: h, link: h.link, tag: h.tag})
	if !a.running {
		a.running = true
		a.session.locks.group.Go(a.work)
	}
}

// wanted says whether its request waits for it still, on that connection.
func (one *acking) wanted() bool {
	h := one.hold
	return h.state == granted && h.link == one.link && h.tag == one.tag
}

func (a *acker) work() {
	for {
		var round []*acking
		var l *link
		a.session.locks.locked(func() {
			a.queue = slices.DeleteFunc(a.queue, func(one *acking) bool { return !one.wanted() })
			round, l = slices.Clone(a.queue), a.session.link
			a.running = len(round) > 0
		})
		if len(round) == 0 {
			return
		}
		a.serve(l, round)
	}
}

// serve waits until the easiest has what it needs, no longer than it may take, and passes the result to the holds.
func (a *acker) serve(l *link, round []*acking) {
	ctx, cancel := context.WithTimeout(a.session.locks.closing, plus(a.session.locks.timeout, slice))
	defer cancel()
	fresh, replies, err := a.ask(ctx, l, round)
	if err != nil {
		a.disconnect()
	}
	defer a.session.locks.lock()()
	if err != nil {
		for _, one := range round {
			if one.wanted() {
				one.hold.reject(&ConnectionError{err})
			}
		}
		return
	}
	for i, one := range fresh {
		if one.wanted() {
			one.hold.renewedToo(replies[i])
		}
	}
	for _, one := range round {
		if one.wanted() {
			one.hold.acked(replies[len(fresh)], one.until)
		}
	}
}

// ask renews those that were not yet, and says how many replicas have that.
func (a *acker) ask(ctx context.Context, l *link, round []*acking) (fresh []*acking, replies []any, err error) {
	if err := a.connect(ctx, l); err != nil {
		return nil, nil, err
	}
	var commands [][]string
	need, left, now := round[0].hold.terms.acks, slice, time.Now()
	for _, one := range round {
		if one.over != a.link {
			one.over, one.until = a.link, now.Add(one.hold.terms.ackTime)
			fresh = append(fresh, one)
			commands = append(commands, a.link.wire(one.hold.renewal(one.hold.terms.lease)))
		}
		need, left = min(need, one.hold.terms.acks), min(left, one.until.Sub(now))
	}
	wait := []string{"WAIT", strconv.Itoa(need), ms(max(left, 1))}
	replies, err = a.link.ask(ctx, append(commands, wait)...)
	return fresh, replies, err
}

// renewedToo gets the reply to the RENEW on the connection for acks.
func (h *turn) renewedToo(reply any) {
	switch err, refused := said(reply).(replyError); {
	case refused && h.link.lacks(err):
		h.link.fail(err)
	case refused && err.code() == "NOTHELD":
		h.lostAt(err)
	case refused:
		h.reject(err.public())
	}
}

func (h *turn) acked(replicas any, until time.Time) {
	refused, isRefused := replicas.(replyError)
	n, _ := replicas.(int64)
	switch {
	case isRefused:
		h.reject(refused.public())
	case n >= int64(h.terms.acks):
		h.give()
	case !time.Now().Before(until):
		h.reject(&RefusedError{"NOREPLICAS", fmt.Sprintf("%d of %d replicas have it", n, h.terms.acks)})
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
	a.link.backend, a.link.cluster = l.backend, l.cluster
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
	ready := make(chan any, 1)
	l.session.locks.locked(func() {
		if l.run != "" {
			ready <- l.run
			return
		}
		l.send(func(reply any, _ time.Time) {
			if info, ok := reply.(string); ok {
				l.run = runOf(info)
				reply = l.run
			}
			ready <- reply
		}, "INFO", "server")
	})
	select {
	case reply := <-ready:
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
