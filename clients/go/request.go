package rlock

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// The way of a hold: asking, granted (not yet given to the program), held, over. Or abandoned:
// nobody wants it, but its end was not notified yet.
type state uint8

const (
	asking state = iota
	granted
	held
	abandoned
	over
)

// A request is what a hold has until it was given to the program.
type request struct {
	done   chan struct{} // closed when the hold was given, or with err
	err    error
	until  time.Time // when the server may end its wait; zero: never
	queued bool      // the server has said on this connection that it waits
	asked  bool      // on any connection
	before bool      // on one that is gone
	ends   time.Time // when it has to be over; zero: with its context
	// On a server without the module.
	began time.Time
	line  *line // in which it waits
	tries int   // that have no reply
}

// A server that is late to say that the wait is over is given so long.
const grace = time.Second

// So late is a timer only of a process that was itself paused.
const late = 100 * time.Millisecond

// A server that grants nothing yet is asked again after so long.
const notYet = 500 * time.Millisecond

// acquire is the way of all requests.
func (l *Locks) acquire(ctx context.Context, job *Job, keys []string, opts []Option) (*Hold, error) {
	t := newTerms(opts)
	if err := t.check(keys); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := l.newRequest(ctx, &t)
	h := &turn{hold: &Hold{Key: keys[0], locks: l}, key: keys[0], locks: l, terms: t, job: job, request: r}
	h.hold.turn = h
	if len(keys) > 1 {
		h.keys = append([]string(nil), keys...)
	}
	if job == nil {
		h.owner = newOwner()
	} else if h.owner = job.Owner; job != nil {
		if err := job.admit(ctx, h); err != nil {
			return nil, err
		}
	}
	begun, read := false, func() {}
	defer func() {
		if !begun { // or ctx, which is the program's, has panicked
			l.locked(h.free)
		}
	}()
	ended := ctx.Done() // while nothing is asked for yet
	if err := l.begin(ctx, h, &read); err != nil {
		return nil, err
	}
	begun = true
	read()
	return h.await(ctx, ended, r)
}

func (l *Locks) newRequest(ctx context.Context, t *terms) *request {
	now := time.Now()
	r := &request{done: make(chan struct{}), began: now}
	if t.bounded {
		r.until, r.ends = now.Add(t.wait), now.Add(max(plus(t.wait, grace), l.timeout))
	} else if deadline, ok := ctx.Deadline(); ok {
		r.until = deadline.Add(grace) // should this process be paused then
	}
	return r
}

func (l *Locks) begin(ctx context.Context, h *turn, read *func()) error {
	s, err := l.router.session(ctx, h.key)
	defer l.lock()()
	switch {
	case l.closed:
		return ErrClosed
	case err != nil:
		return err
	}
	h.number = l.next()
	*read = s.led(func() { h.enlist(s) })
	if ends := h.request.ends; !ends.IsZero() {
		l.lookAt(ends)
	}
	return nil
}

// lookAt has the timer look then for requests whose time is over. It is one for all, and
// stays as it is when such a request ends: so most set none.
func (l *Locks) lookAt(at time.Time) {
	if l.looks.IsZero() || at.Before(l.looks) {
		l.looks = at
		l.timer.Reset(time.Until(at))
	}
}

func (l *Locks) look() {
	defer l.lock()()
	now := time.Now()
	if stood := now.Sub(l.looks) > late; stood && !l.spared {
		// This process itself was paused: the answers may lie there unread.
		l.spared = true
		l.looks = time.Time{}
		l.lookAt(now.Add(grace / 2))
		return
	}
	l.spared = false
	l.looks = time.Time{}
	for _, s := range l.router.sessions() {
		for h := range s.requests {
			r := h.request
			if r.ends.IsZero() {
				continue
			}
			if !now.Before(r.ends) {
				if h.state == asking {
					h.expire(nil, false)
					continue
				}
				r.ends = now.Add(grace) // replicas, or the proof of its lease, take their time
			}
			l.lookAt(later(r.ends, now.Add(10*time.Millisecond))) // not for each of many
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// enlist asks at this session, now or when it has a connection.
func (h *turn) enlist(s *session) {
	h.session = s
	s.requests[h] = struct{}{}
	if s.link != nil && !s.link.deaf {
		h.ask()
	} else {
		s.ensure()
	}
}

func (h *turn) await(ctx context.Context, ended <-chan struct{}, r *request) (*Hold, error) {
	select {
	case <-r.done:
	case <-ended:
		h.expireWith(ctx)
	}
	if r.err != nil {
		return nil, r.err
	}
	return h.hold, nil
}

// ask says the request on the connection that there is.
func (h *turn) ask() {
	l := h.session.link
	tag := l.enter(h)
	if l.backend != module {
		if h.job != nil && !h.request.asked {
			h.owner = newOwner() // a late release would end another hold of the job's owner
		}
		h.request.asked = true
		l.wait(h)
		return
	}
	words := h.acquisition(h.owner, ms(h.terms.lease))
	if h.request.until.IsZero() {
		words = append(words, "QUEUE", "0")
	} else if left := time.Until(h.request.until); left > 0 {
		words = append(words, "QUEUE", ms(left))
	}
	words = append(words, "NOTIFY", l.channel, tag)
	if h.terms.watchdog {
		words = append(words, "WATCHDOG")
	}
	words = h.withHints(words)
	h.request.asked = true
	number := h.tag
	l.send(func(reply any, sent time.Time) {
		err, _ := reply.(replyError)
		switch {
		case h.link != l || h.tag != number:
		case h.state == asking && err.isSyntax() && l.refusesHints(words, reply):
			l.forget(h)
			h.ask() // without the word
		default:
			h.replied(reply, sent)
		}
	}, words...)
}

// acquisition is the command for it, without what says how it waits.
func (h *turn) acquisition(owner, lease string) []string {
	words := append(h.words("ACQUIRE"), owner, lease)
	switch t := &h.terms; t.mode {
	case read:
		words = append(words, "READ")
	case write:
		words = append(words, "WRITE")
	case limited:
		words = append(words, "LIMIT", strconv.Itoa(t.limit), "PERMITS", strconv.Itoa(t.permits))
	}
	return append(words, "ONCE")
}

func (h *turn) replied(reply any, sent time.Time) {
	if h.state != asking && h.state != abandoned {
		return // a message was sooner
	}
	if _, isError := reply.(error); !isError {
		h.session.backoff = 0 // a master
	}
	switch reply := reply.(type) {
	case int64:
		h.granted(reply, sent)
	case nil:
		h.refuse(h.notAcquired())
	case replyError:
		h.failed(reply)
	case string:
		if h.state == asking {
			h.stands()
		}
	}
}

// message is a message of the server with its tag.
func (h *turn) message(word, rest string) {
	l := h.link
	switch word {
	case "granted":
		token, also, _ := strings.Cut(rest, " ")
		if also, _, _ = strings.Cut(also, " "); also == "wanted" {
			h.isWanted()
		}
		number, _ := strconv.ParseInt(token, 10, 64)
		h.granted(number, time.Time{})
	case "wanted":
		h.isWanted()
	case "timeout":
		h.refuse(h.notAcquired())
	case "error":
		if err := replyError(rest); err.noMaster() {
			l.fail(err)
		} else {
			h.failed(err)
		}
	case "lost":
		// Its other keys are let go too, and a new master may have it still.
		if (h.state == held || h.state == granted) && (h.keys != nil || rest == "moved" || rest == "demoted") {
			h.leave(false)
		}
		h.lose(rest)
		if rest == "demoted" {
			l.fail(replyError("UNBLOCKED the server turned replica"))
		}
	}
}

// granted gives the hold to the program, when all is proved that has to be. Sent is when the
// request was, if this is its reply.
func (h *turn) granted(token int64, sent time.Time) {
	switch {
	case h.state == abandoned:
		h.token = token
		h.settle()
		h.leave(false)
		return
	case h.state != asking:
		return
	}
	h.state, h.token, h.deadline = granted, token, sent.Add(h.terms.lease)
	if h.terms.watchdog && h.link.backend != module {
		h.session.keep(h, sent)
	}
	if h.terms.watchdog || !sent.IsZero() {
		h.proved()
		return
	}
	// It waited: nobody here knows how much of its lease is gone.
	h.link.send(func(reply any, sent time.Time) {
		err, isError := reply.(replyError)
		switch {
		case h.state != granted || reply == errBroken:
		case isError && err.code() == "NOTHELD":
			h.lostAt(err)
		case isError:
			h.reject(err.public())
		default:
			h.deadline = sent.Add(h.terms.lease)
			h.proved()
		}
	}, h.renewal(h.terms.lease)...)
}

// proved is called when the lease is known to run.
func (h *turn) proved() {
	if h.terms.acks > 0 {
		h.session.acker.add(h)
	} else {
		h.give()
	}
}

func (h *turn) give() {
	delete(h.session.requests, h)
	h.session.holds[h] = struct{}{}
	for _, key := range h.keyList() {
		h.locks.held[key] = h
	}
	h.state = held
	h.since = clock()
	h.become()
	h.arm()
	close(h.request.done)
	h.request = nil
	if h.stay != nil {
		h.stay.came(h)
	}
}

// stands is called when the server has said on this connection that it waits.
func (h *turn) stands() {
	h.request.queued = true
	if h.stay != nil {
		h.stay.stands(h)
	}
}

// notAcquired knows who has it where that is one of these very locks.
func (h *turn) notAcquired() error {
	err := &NotAcquiredError{Key: h.key}
	for _, key := range h.keyList() {
		if holder := h.locks.held[key]; holder != nil {
			err.Key, err.HeldBy = key, holder.owner
		}
	}
	return err
}

// reject gives a hold back that was granted, and fails its request.
func (h *turn) reject(err error) {
	h.state = abandoned
	h.settle()
	h.leave(false)
	h.finish(err)
}

// failed is an error of the server.
func (h *turn) failed(err replyError) {
	if other := h.locks.router.elsewhere(); h.state == asking && err.elsewhere() && other != nil {
		h.reroute(other)
		return
	}
	if h.state == asking && err.code() == "NOTYET" {
		h.askLater(err)
		return
	}
	if h.state == asking && err.code() == "SUPERSEDED" && h.request.before {
		// By what it said on a connection that is gone, and that came late.
		h.request.before = false
		h.link.forget(h)
		h.ask()
		return
	}
	h.refuse(err.public())
}

// askLater asks again, as long as there is time: the server grants nothing yet.
func (h *turn) askLater(err error) {
	h.link.forget(h)
	h.session.failure = err
	h.request.queued = false
	time.AfterFunc(notYet, func() {
		defer h.locks.lock()()
		if h.state == asking && h.link == nil && h.session.link != nil {
			h.ask()
		}
	})
}
