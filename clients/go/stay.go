package rlock

import (
	"sync/atomic"
	"time"
)

// A sticky lock: the rule is "Sticky" in clients/README.md.
//
// A use takes and leaves it by itself, as long as nothing speaks against it. Everything else is decided under the lock of the
// Locks, by look: whatever has happened, it does what follows.

const (
	most  = time.Second           // then it goes back although nobody says that he waits: who polls is to have a chance
	pause = 10 * time.Millisecond // of that length
)

// A Sticky is a lock that stays with this process between its uses. See [Locks.Sticky].
type Sticky struct {
	Key string

	key   string
	locks *Locks
	terms terms
	wait  time.Duration
	half  time.Duration // so long a proof of the connection is good

	// Who has the lock in this process: a use, or looking. To take it is one step.
	user  atomic.Pointer[Use]
	waits atomic.Int32 // how many are in line
	// Until then a use needs to ask nobody, should the connection be proved. Zero: somebody has to look first.
	until bound
	proof atomic.Pointer[bound] // when the link was proved on which its loss is notified
	used  atomic.Int64          // when the last use ended, by Go's clock
	uses  int                   // that have ended since its grant: of who has the lock in this process

	// All below with the lock of the Locks held.
	line    []*waiting
	session *session
	turn    *turn // an acquisition, or what came of it. It is another one only while looking has the lock
	since   moment
	pause   moment // it is not acquired before
	served  bool   // a use has had it since its grant
	backoff backoff
	read    bool // its token was read
	unsure  bool // what its token is nobody knows
	closed  bool
	gone    chan struct{} // closed when the server has answered to its last release
	proves  bool
	ends    []chan struct{} // of uses that ask first whether they had it
	timer   *time.Timer
	winds   bool
}

// It stands for the session while that decides.
var looking = new(Use)

// take begins a use without a message, if that may be.
func (s *Sticky) take(u *Use) bool {
	if s.waits.Load() > 0 || !s.user.CompareAndSwap(nil, u) {
		return false
	}
	if !s.isFresh(thisMoment()) {
		s.user.Store(nil)
		return false
	}
	u.turn, u.Owner = s.turn, s.turn.owner
	return true
}

func (s *Sticky) isFresh(at moment) bool {
	return s.until.isAhead(at, 0) && s.proof.Load().isAhead(at, s.half)
}

// leave gives it to the next use of the process.
func (s *Sticky) leave(u *Use, at moment) {
	s.user.CompareAndSwap(u, nil)
	if s.waits.Load() > 0 || !s.until.isAhead(at, 0) {
		s.locks.locked(s.look)
	}
	if scope := u.scope.Load(); scope != nil {
		scope.cancel(nil)
	}
}

// end says whether the use had the lock to its end.
func (s *Sticky) end(u *Use) (err error) {
	at := thisMoment()
	s.used.Store(at.mono)
	s.uses++
	if !s.isFresh(at) {
		err = s.had(u, at)
	}
	s.leave(u, at)
	return err
}

// had says so where that is not certain. Where nothing was heard for too long (the process was stopped, say) it asks.
func (s *Sticky) had(u *Use, at moment) error {
	var heard chan struct{}
	s.locks.locked(func() {
		if u.turn.look(); u.turn.reason == nil && !s.proof.Load().isAhead(at, s.half) {
			heard = make(chan struct{})
			s.ends = append(s.ends, heard)
			s.look()
		}
	})
	if heard != nil {
		<-heard
	}
	defer s.locks.lock()()
	return u.turn.loss()
}

// look does what follows from what there is. While a use has the lock that is nothing: when it ends it looks again.
func (s *Sticky) look() {
	at := thisMoment()
	s.mark(at)
	if s.user.CompareAndSwap(nil, looking) {
		s.decide(at)
		s.user.CompareAndSwap(looking, nil)
	}
	if len(s.ends) > 0 {
		if s.isAway() || s.isProved(at) {
			for _, heard := range s.ends {
				close(heard)
			}
			s.ends = nil
		} else {
			s.prove()
		}
	}
	s.mark(at)
	s.wind(at)
	if s.turn == nil && len(s.line) == 0 {
		delete(s.locks.stays, s)
	}
}

// mark is done before anything else is looked at: a use that has the lock already sees it at its end.
func (s *Sticky) mark(at moment) {
	if s.isAway() || s.leaves(at) {
		s.until.set(moment{})
	}
	if s.turn != nil && s.turn.link != nil {
		s.proof.Store(s.turn.link.proved())
	}
}

func (s *Sticky) decide(at moment) {
	if s.turn != nil && s.turn.link != nil {
		defer s.turn.link.gather()()
	}
	switch {
	case s.turn != nil && s.turn.state == over:
		s.turn = nil
	case s.leaves(at):
		s.goBack(at)
	}
	if len(s.line) == 0 {
		return
	}
	switch {
	case s.turn == nil:
		if s.pause.ago(at) >= 0 {
			s.acquire()
		}
	case s.isAway():
	case s.isProved(at):
		s.give(at)
	default:
		s.prove()
	}
}

// isAway says whether it was lost, or never had.
func (s *Sticky) isAway() bool { return s.turn == nil || s.turn.state != held }

func (s *Sticky) isProved(at moment) bool { return s.proof.Load().isAhead(at, s.half) }

func (s *Sticky) isUsed() bool {
	user := s.user.Load()
	return user != nil && user != looking
}

// leaves says whether it goes back when no use has it.
func (s *Sticky) leaves(at moment) bool {
	if s.isAway() {
		return false
	}
	h, alone, age := s.turn, len(s.line) == 0, s.since.ago(at)
	switch {
	case s.closed || s.unsure || alone && s.backoff.left > 0:
		return true
	case h.link == nil || !h.mayBeHinted(): // nobody would say that somebody waits
		return s.served || alone
	case !h.hints.said.IsZero():
		return alone || s.served && age >= leastAge
	case age >= most:
		return alone || s.served
	}
	return alone && !s.isUsed() && at.mono-s.used.Load() >= int64(s.terms.idle)
}

// goBack releases it. If it is acquired again at once, that goes out in the same write.
func (s *Sticky) goBack(at moment) {
	h, gone := s.turn, make(chan struct{})
	isWanted := !h.hints.said.IsZero()
	s.until.set(moment{})
	s.backoff.wentBack(s.uses, isWanted)
	if !isWanted && s.since.ago(at) >= most {
		s.pause = at.plus(pause)
		time.AfterFunc(pause, func() { s.locks.locked(s.look) })
	}
	s.turn, s.gone = nil, gone
	leaving := h.depart()
	over := leaving.over
	leaving.over = func() {
		if over != nil {
			over()
		}
		close(gone)
	}
	if leaving.session.link == nil { // it is sent on the next connection
		leaving.over()
		leaving.over = nil
	}
}

func (s *Sticky) acquire() {
	h := &turn{
		hold: &Hold{Key: s.key, locks: s.locks}, key: s.key, owner: newOwner(), locks: s.locks, terms: s.terms, stay: s,
		request: &request{done: make(chan struct{}), began: time.Now()}, hints: &hints{}, number: s.locks.next(),
	}
	h.hold.turn, s.turn = h, h
	h.enlist(s.session)
}

// came is called when an acquisition was granted.
func (s *Sticky) came(h *turn) {
	at := thisMoment()
	h.regained = true // by which token it ends nobody need know: its owner has nothing else
	s.since, s.uses, s.served, s.read, s.unsure = at, 0, false, false, false
	s.used.Store(at.mono)
	s.proof.Store(h.link.proved())
	h.link.tellProof()
	s.until.set(at.plus(most))
	s.look()
}

// failed is called when one has ended otherwise.
func (s *Sticky) failed(h *turn, err error) {
	if s.turn == h {
		s.turn = nil
		s.removeAll(err)
		s.look()
	}
}

// wasLost is called when it is not held any more.
func (s *Sticky) wasLost(h *turn) {
	if s.turn == h {
		if user := s.user.Load(); user != nil {
			if scope := user.scope.Load(); scope != nil {
				go scope.cancel(h.reason) // the program's contexts are notified
			}
		}
	}
	s.look()
}

// prove asks on the link. What the server has said of the lock until now is read before its answer.
func (s *Sticky) prove() {
	l := s.turn.link
	if l == nil || s.proves {
		return
	}
	s.proves = true
	l.send(func(any, time.Time) {
		s.proves = false
		s.look()
	}, "PING")
}

// wind sets when to look again.
func (s *Sticky) wind(at moment) {
	if s.isAway() || s.winds {
		return
	}
	in := max(s.terms.idle, 10*time.Millisecond)
	if !s.isUsed() && len(s.line) == 0 {
		in = min(s.terms.idle-time.Duration(at.mono-s.used.Load()), most-s.since.ago(at))
	}
	if s.winds = true; s.timer == nil {
		s.timer = time.AfterFunc(max(in, 0), s.ring)
	} else {
		s.timer.Reset(max(in, 0))
	}
}

func (s *Sticky) ring() {
	defer s.locks.lock()()
	s.winds = false
	s.look()
}

// shut closes it, and says for what to wait; nil: for nothing.
func (s *Sticky) shut() (gone chan struct{}) {
	defer s.locks.lock()()
	s.closed = true
	s.removeAll(&stickyClosed{s.key})
	used := s.isUsed()
	s.look()
	if used {
		return nil
	}
	return s.gone
}
