package rlock

import (
	"context"
	"strconv"
	"time"
)

// A turn is a hold from its request to its end. A Hold that has given way has another one than before.
type turn struct {
	hold  *Hold // the program's
	token int64
	key   string // of several the first
	owner string

	keys      []string // of several
	locks     *Locks
	terms     terms
	session   *session
	job       *Job
	link      *link // on which its loss is notified
	tag       uint64
	regaining *pendingCommand // asks on a new connection whether it is still held
	regained  bool            // and it was: a server that was restarted does not know its token
	number    uint64
	state     state
	nested    int
	deadline  time.Time       // without the server's watchdog
	due       time.Time       // when the session renews it; zero: that is under way
	renewals  int             // by the program
	underway  []time.Duration // the leases that those ask for which have no reply
	hints     *hints          // once the program has asked for them
	stay      *Sticky         // whose it is, and not a program's hold
	timer     *time.Timer
	lost      chan struct{}
	reason    *LostError
	since     time.Time // when it was granted
	behind    *turn     // whose release it was asked behind, until the server has taken that
	onLost    context.CancelCauseFunc
	request   *request
	canceling *pendingCommand // its wait is cancelled, and its end was not notified yet
	leaving   int             // releases under way; until then the job does not ask for it again
	freed     chan struct{}   // closed when it may
}

func (h *turn) keyList() []string {
	if h.keys != nil {
		return h.keys
	}
	return []string{h.key}
}

// gone is closed when it is lost.
func (h *turn) gone() <-chan struct{} {
	if h.lost == nil {
		h.lost = make(chan struct{})
		if h.reason != nil {
			close(h.lost)
		}
	}
	return h.lost
}

func (h *turn) loss() error {
	if h.reason == nil {
		return nil
	}
	return h.reason
}

// look finds out whether its time has passed, should the timer be late.
func (h *turn) look() {
	over := !clock().Before(h.deadline)
	if h.state == held && over && (!h.terms.watchdog || h.isKept()) {
		h.runOut()
	}
}

// ended is nil as long as it is held.
func (h *turn) ended() error {
	h.look()
	switch {
	case h.reason != nil:
		return h.reason
	case h.state != held:
		return errReleased
	}
	return nil
}

// arm sets the timer for the end that the client sees to.
func (h *turn) arm() {
	switch {
	case h.terms.max > 0:
		h.timer = time.AfterFunc(h.terms.max, func() {
			defer h.locks.lock()()
			if h.state == held {
				h.leave(true)
				h.lose("max")
			}
		})
	case !h.terms.watchdog:
		h.timer = time.AfterFunc(h.deadline.Sub(clock()), func() {
			defer h.locks.lock()()
			h.look()
		})
	}
}

// lose ends it for the program, for good.
func (h *turn) lose(reason string) {
	if h.state != held && h.state != granted {
		return
	}
	given := h.state == held
	h.settle()
	h.free()
	h.reason = &LostError{h.key, reason}
	h.notifyLoss()
	if !given {
		h.finish(h.reason)
	} else if h.stay != nil {
		h.stay.wasLost(h)
	}
}

func (h *turn) notifyLoss() {
	if h.lost != nil {
		close(h.lost)
	}
	if h.onLost != nil {
		// The program's contexts are notified: that is its code.
		go h.onLost(h.reason)
	}
}

// depart ends it for the program, and releases it on the server.
func (h *turn) depart() *leaving {
	link, tag := h.link, h.tag
	h.settle()
	leaving := h.leave(!h.regained)
	if link != nil {
		link.follow(h)
		link.leaving[tag] = h
		leaving.over = func() { delete(link.leaving, tag) }
	}
	return leaving
}

// A leaving is a release under way.
type leaving struct {
	session *session
	done    chan error
	failed  func(error) // called with each error of it; may be nil
	over    func()      // its reply has come, or never will; may be nil
	exact   bool        // it is the first command that ends the hold
}

func (l *leaving) await(done chan error) {
	if l.session.link == nil && !l.session.reloads() {
		done <- nil // it is sent on the next connection
	} else {
		l.done = done
	}
}

// lostBefore is called, while its release is under way, when it was lost before. If it was
// released, it is this release that the server notifies.
func (h *turn) lostBefore(reason string) {
	if h.reason == nil && reason != "released" {
		h.reason = &LostError{h.key, reason}
	}
}

func (l *leaving) finish(err error) {
	if l.over != nil {
		l.over()
		l.over = nil
	}
	if err != nil && l.failed != nil {
		l.failed(err)
	}
	if l.done != nil {
		l.done <- err
		l.done = nil
	}
}

// leave releases on the server what the program does not have any more: exactly this hold,
// if it is the first command that ends it, else whatever the owner has.
func (h *turn) leave(exact bool) *leaving {
	var l *leaving
	l = h.cleanUp(func(again bool) []string {
		exact = exact && !again
		if l != nil {
			l.exact = exact
		}
		return h.release(exact)
	})
	l.exact = exact
	return l
}

// wasGone says whether its release found that it was lost before, where nobody notifies of it.
func (l *leaving) wasGone(h *turn, reply any) bool {
	_, isError := reply.(replyError)
	released, isMany := reply.(int64)
	return l.exact && h.reason == nil && l.session.backend != module &&
		(isError || isMany && h.keys != nil && released < int64(len(h.keys)))
}

// cleanUp retries it until the server has taken it: on the next connection if this one breaks, with the
// next heartbeat if it was refused. Until then the job does not ask for the key again.
func (h *turn) cleanUp(command func(again bool) []string) *leaving {
	l := &leaving{session: h.session}
	h.leaving++
	answered := func(reply any, _ time.Time) bool {
		err, isError := reply.(replyError)
		switch {
		case reply == errBroken:
			if !l.session.reloads() {
				l.finish(nil)
			}
			return false
		case isError && !err.gone():
			l.finish(err.public())
			return false
		case isError && err.code() == "WRONGTYPE" && (!l.exact || l.session.backend == module):
			l.finish(err.public())
		default:
			if l.wasGone(h, reply) {
				h.reason = &LostError{h.key, h.goneFor(err)}
			}
			l.finish(h.loss()) // notified before the reply
		}
		h.leaving--
		h.free()
		return true
	}
	h.session.addPending(&pendingCommand{key: h.key, command: command, answered: answered})
	return l
}

// The commands of a hold.

func (h *turn) words(command string) []string {
	if h.keys == nil {
		return append(make([]string, 0, 16), "RLOCK."+command, h.key)
	}
	return append([]string{"RLOCK.M" + command, strconv.Itoa(len(h.keys))}, h.keys...)
}

func (h *turn) mode() []string {
	return [][]string{plain: nil, read: {"READ"}, write: {"WRITE"}, limited: {"PERMITS"}}[h.terms.mode]
}

func (h *turn) renewal(lease time.Duration) []string {
	return append(append(h.words("RENEW"), h.owner, ms(lease)), h.mode()...)
}

func (h *turn) cancel() []string {
	return append([]string{"RLOCK.CANCEL", h.key, h.owner}, h.mode()...)
}

func (h *turn) release(exact bool) []string {
	words := append(append(h.words("RELEASE"), h.owner), h.mode()...)
	switch {
	case h.keys != nil:
		return words
	case !exact:
		return append(words, "ALL", "IFHELD")
	case h.terms.mode == limited:
		words = append(words, strconv.Itoa(h.terms.permits))
	}
	return append(words, "IFTOKEN", strconv.FormatInt(h.token, 10))
}

// ms is rounded up, so that it is never 0, which would mean for ever.
func ms(d time.Duration) string {
	whole := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		whole++
	}
	return strconv.FormatInt(whole, 10)
}
