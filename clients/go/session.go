package rlock

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// A session is what a process has with one server: one connection at a time, and what is to
// be sent on the next one.
type session struct {
	locks     *Locks
	options   *redis.Options
	subscribe string
	channel   func() string
	link      *link // nil: there is none
	dialing   bool
	backoff   time.Duration // before the next attempt to reconnect
	failure   error         // why there is none
	requests  map[*turn]struct{}
	holds     map[*turn]struct{}
	pending   map[*pendingCommand]struct{}
	acker     acker
	reach     func() // until there is a connection
	near      string // in a cluster: a key that the node has
	backend   backend
	place     string             // what the names of its places begin with
	kept      map[*turn]struct{} // which the session renews
	keeper    *time.Timer        // for them; nil: there was none
	keepsAt   time.Time          // when it rings; zero: it does not
	keepsLate bool               // it was late, and rings again
}

// What is sent on a new connection, in this order.
type kind uint8

const (
	cleanup   kind = iota // releases, and the ends of waits
	regaining             // that the loss of a plain hold is notified there
	renewing              // behind it, for it sets the lease too
)

// A pendingCommand is a command that still has to reach the server: it is retried on the next connection when its
// reply was lost, so it is idempotent.
type pendingCommand struct {
	kind    kind
	number  uint64
	session *session
	key     string
	command func(again bool) []string
	// answered is called with the reply, and with errBroken. It returns whether the command is done.
	answered func(reply any, sent time.Time) bool
	isSent   bool
	again    bool
}

func newSession(locks *Locks, options *redis.Options) *session {
	s := &session{
		locks: locks, options: options, subscribe: "SUBSCRIBE", channel: newChannel,
		requests: map[*turn]struct{}{}, holds: map[*turn]struct{}{}, pending: map[*pendingCommand]struct{}{},
		kept: map[*turn]struct{}{}, place: rand.Text() + ".",
	}
	s.acker.session, s.reach = s, s.dial
	return s
}

func (s *session) busy() bool { return len(s.requests)+len(s.pending) > 0 }

// ensure connects, if there is anything to do.
func (s *session) ensure() {
	if s.link == nil && !s.dialing && s.locks.ended.Err() == nil && s.busy() {
		s.dialing = true
		s.locks.group.Go(s.reach)
	}
}

func (s *session) dial() {
	for goOn := true; goOn; {
		var backoff time.Duration
		var channel string
		s.locks.locked(func() {
			channel = s.channel()
			backoff, s.backoff = s.backoff, min(max(2*s.backoff, 50*time.Millisecond), time.Second)
		})
		select {
		case <-time.After(backoff):
		case <-s.locks.ended.Done():
		}
		ctx, cancel := context.WithTimeout(s.locks.ended, s.locks.timeout)
		l, err := s.connect(ctx, channel, s.subscribe)
		cancel()
		s.locks.locked(func() {
			goOn = s.dialled(l, err)
			s.dialing = goOn
		})
	}
}

// dialled says whether to try again.
func (s *session) dialled(l *link, err error) bool {
	if s.locks.ended.Err() != nil {
		if l != nil {
			s.locks.group.Go(func() { l.end() })
		}
		return false
	}
	if err == nil {
		s.begin(l)
		return false
	}
	s.failure = err
	if refused := refusal(err); refused != nil {
		for h := range s.requests {
			h.refuse(refused)
		}
	}
	if other := s.locks.router.elsewhere(); other != nil {
		s.reroute(other) // another node may have its place
	}
	return s.busy()
}

// begin says on a new connection what was left over from the one before, then asks again.
func (s *session) begin(l *link) {
	s.link, l.session, s.failure = l, s, nil
	l.table, l.leaving = map[uint64]*turn{}, map[uint64]*turn{}
	l.watched, l.plain = map[time.Duration]int{}, map[time.Duration]int{}
	l.short, l.since, l.pinged = idleLease, l.proof, l.proof
	first := idleLease / 3
	if l.backend != module {
		first = min(first, s.locks.askEvery)
	}
	l.due = clock().Add(first)
	l.lines, l.heard, l.asked, l.cluster = map[string]*line{}, map[string][]*line{}, l.proof, s.subscribe == "SSUBSCRIBE"
	s.learnt(l.backend)
	l.timer = time.AfterFunc(first, func() { s.locks.locked(l.beat) })
	s.locks.group.Go(l.read)
	s.locks.group.Go(l.write)
	if s.locks.patience == 0 || l.backend != module { // without it nothing is taken from who is silent
		l.onlyPing()
	} else {
		l.live()
	}
	s.sendAllPending()
	s.ask()
}

// ask asks for all that was not asked for on this connection.
func (s *session) ask() {
	byNumber := func(a, b *turn) int { return cmp.Compare(a.number, b.number) }
	for _, h := range slices.SortedFunc(maps.Keys(s.requests), byNumber) {
		if h.link == nil {
			h.ask()
		}
	}
}

// sendAllPending sends the pending commands that have no reply and are not under way, in their order.
func (s *session) sendAllPending() {
	if len(s.pending) == 0 {
		return
	}
	for _, t := range s.inOrder() {
		s.sendPending(t)
	}
}

func (s *session) inOrder() []*pendingCommand {
	return slices.SortedFunc(maps.Keys(s.pending), func(a, b *pendingCommand) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number))
	})
}

func (s *session) addPending(t *pendingCommand) {
	t.session = s
	if t.number == 0 {
		t.number = s.locks.next()
	}
	s.pending[t] = struct{}{}
	if s.link != nil {
		s.sendPending(t)
	} else {
		s.ensure()
	}
}

func (s *session) sendPending(t *pendingCommand) {
	if t.isSent || t.kind == regaining && s.link.deaf {
		return
	}
	t.isSent = true
	words := t.command(t.again)
	t.again = true
	s.link.send(func(reply any, sent time.Time) {
		t.isSent = false
		err, isError := reply.(replyError)
		_, wanted := s.pending[t]
		if other := s.locks.router.elsewhere(); isError && err.elsewhere() && other != nil && wanted {
			t.answered(errBroken, sent)
			delete(s.pending, t)
			other.addPending(t)
		} else if t.answered(reply, sent) {
			s.backoff = 0
			delete(s.pending, t)
		}
		s.locks.notifyClose()
	}, words...)
}

// broken is called when the connection was closed: its holds with a watchdog are lost.
func (s *session) broken(l *link, err error) {
	s.link, s.failure = nil, err
	for _, h := range l.table {
		h.link = nil
		switch {
		case h.state == asking:
			h.request.queued, h.request.before = false, true
		case h.state == abandoned:
			h.callOff()
		case h.state == granted && (!h.terms.watchdog || h.isKept()):
			s.unkeep(h)
			h.state, h.request.before = asking, true
		case h.isKept():
			h.regain()
		case h.terms.watchdog:
			h.leave(false)
			h.lose("connection")
		default:
			h.regain()
		}
	}
	s.ensure()
}

// reloads says whether the connection was closed to load the library again: the next one comes at once.
func (s *session) reloads() bool {
	err, _ := s.failure.(replyError)
	return s.link == nil && err.noLibrary()
}

// close ends all that there is.
func (s *session) close() {
	for h := range s.requests {
		h.abandon(ErrClosed)
	}
	if s.link != nil {
		for _, h := range s.link.table {
			if h.state == abandoned {
				h.callOff()
			}
		}
	}
	for h := range s.holds {
		h.leave(!h.regained)
		h.lose("closed")
	}
}
