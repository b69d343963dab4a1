package rlock

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

var errBroken = errors.New("the connection broke")

// A link is one connection of a session. All but the two goroutines' reading and writing is
// done with the lock of the Locks held, also the functions that get replies.
type link struct {
	session     *session
	conn        net.Conn
	in          *bufio.Reader
	end         func() error
	channel     string
	deaf        bool          // it has no channel now: the slot has moved
	out         []byte        // what is left to its writer
	wake        chan struct{} // something is left to it, or the link is closed
	writing     bool          // it has not written all
	roomy       bool          // see few
	lends       bool          // calls may read it
	reading     reading
	calls       int           // how many have read it
	interrupted bool          // the one that reads it
	resume      chan struct{} // the reader is to read, or the link is closed
	briskly     int           // so many commands have followed briskly on each other
	unanswered  int           // how many bytes have no reply
	replies     []expected
	tags        uint64
	table       map[uint64]*turn
	leaving     map[uint64]*turn      // while their release is under way
	watched     map[time.Duration]int // how many requests and holds with the watchdog have which lease
	plain       map[time.Duration]int // and how many without it
	proof       time.Time             // when the newest command that was answered had been sent
	provedAt    *bound                // the same, for uses of sticky locks; nil: there was none
	pinged      time.Time             // when the heartbeat last sent one
	told        time.Duration         // for how long the server knows that this process may be silent
	pings       bool                  // it is not told
	unhinted    bool                  // nor is it asked who waits
	short       time.Duration         // the shortest lease
	since       time.Time             // from when on it is
	timer       *time.Timer
	due         time.Time // when it rings
	spared      time.Time // not closed before, for this process itself was paused
	closed      bool
	// For acks: which run of which server this is.
	run string

	backend  backend
	cluster  bool
	question []string // by which it was asked whether it has the module
	asked    time.Time
	lines    map[string]*line
	heard    map[string][]*line // by channel
	together int                // what is sent meanwhile goes in one write
}

type expected struct {
	sent     time.Time
	size     int
	answered func(reply any, sent time.Time)
	leaves   string // the channel, if it unsubscribes
}

// With no more bytes under way a write cannot take time: every socket has room for them.
const few = 8192

// isRoomy says whether that is a socket, and not what a Dialer made up, as a tunnel.
func isRoomy(conn net.Conn) bool {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// send sends a command; answered gets its reply, a replyError, or errBroken.
func (l *link) send(answered func(reply any, sent time.Time), words ...string) {
	if l.closed {
		answered(errBroken, clock())
		return
	}
	before := len(l.out)
	l.out = appendCommand(l.out, l.wire(words)...)
	size := len(l.out) - before
	l.unanswered += size
	l.replies = append(l.replies, expected{sent: clock(), size: size, answered: answered})
	if l.reading == byNobody {
		l.handOver()
	}
	if l.together == 0 {
		l.flush()
	}
}

// gather has all that is sent until then go in one write.
func (l *link) gather() (flush func()) {
	l.together++
	return func() {
		if l.together--; l.together == 0 && !l.closed && len(l.out) > 0 {
			l.flush()
		}
	}
}

func (l *link) flush() {
	switch {
	case l.writing:
	case l.roomy && l.unanswered <= few:
		// At once, without a change of goroutines.
		if _, err := l.conn.Write(l.out); err != nil {
			l.session.locks.group.Go(func() { l.session.locks.locked(func() { l.fail(err) }) })
		}
		l.out = l.out[:0]
	default:
		l.writing = true
		l.wake <- struct{}{}
	}
}

func (l *link) write() {
	var out []byte
	more := func() bool {
		defer l.session.locks.lock()()
		out, l.out = l.out, out[:0]
		l.writing = len(out) > 0
		return l.writing && !l.closed
	}
	for range l.wake {
		for more() {
			if _, err := l.conn.Write(out); err != nil {
				l.session.locks.locked(func() { l.fail(err) })
				return
			}
			if cap(out) > 1<<20 {
				out = nil
			}
		}
	}
}

func (l *link) read() {
	for {
		reply, err := readReply(l.in)
		l.session.locks.mutex.Lock()
		err = l.take(reply, err)
		calls, rests := l.calls, err == nil && l.lends && l.briskly >= inARow && l.quiet()
		if rests {
			l.reading = byNobody
		}
		l.session.locks.mutex.Unlock()
		if err != nil || rests && !l.rest(calls) {
			return
		}
	}
}

// take takes what was read.
func (l *link) take(reply any, err error) error {
	if l.closed {
		return errBroken
	}
	if err != nil {
		l.fail(err)
	} else if message, pushed := reply.(push); pushed {
		l.push(message)
	} else {
		l.reply(reply)
	}
	return err
}

func (l *link) reply(reply any) {
	if len(l.replies) == 0 {
		l.fail(errors.New("a reply that nobody asked for"))
		return
	}
	first := l.replies[0]
	l.replies[0] = expected{}
	l.replies = l.replies[1:]
	l.unanswered -= first.size
	if first.sent.Sub(l.proof) < brisk {
		l.briskly++
	} else {
		l.briskly = min(l.briskly, 0)
	}
	l.proof = first.sent
	if len(l.session.locks.stays) > 0 {
		l.tellProof()
	}
	if err, ok := reply.(replyError); ok && (err.noMaster() || l.lacks(err)) {
		// The address may soon lead to the master; and the next connection learns what the server has now.
		l.fail(err)
		first.answered(errBroken, first.sent)
		return
	}
	if l.backend != module {
		reply = said(reply)
	}
	first.answered(reply, first.sent)
}

func (l *link) push(message push) {
	kind, _ := message[0].(string)
	switch {
	case len(message) < 3:
	case kind == "unsubscribe" || kind == "sunsubscribe":
		channel, _ := message[1].(string)
		if len(l.replies) > 0 && l.replies[0].leaves == channel {
			l.reply(nil)
		} else if channel == l.channel {
			l.moveChannel()
		} else {
			l.unheard(channel)
		}
	case kind == "subscribe" || kind == "ssubscribe":
		l.reply(nil)
	case kind == "message" || kind == "smessage":
		channel, _ := message[1].(string)
		if lines := l.heard[channel]; lines != nil {
			for _, n := range slices.Clone(lines) {
				n.wake()
			}
			return
		}
		text, _ := message[2].(string)
		word, rest, _ := strings.Cut(text, " ")
		tag, rest, _ := strings.Cut(rest, " ")
		number, _ := strconv.ParseUint(tag, 10, 64)
		if hold := l.table[number]; hold != nil {
			hold.message(word, rest)
		} else if hold := l.leaving[number]; hold != nil && word == "lost" {
			hold.lostBefore(rest)
		}
	}
}

// enter gives the hold its tag on this connection.
func (l *link) enter(h *turn) string {
	l.tags++
	h.link, h.tag = l, l.tags
	l.table[h.tag] = h
	l.lease(&h.terms, h.terms.lease)
	return strconv.FormatUint(h.tag, 10)
}

// forget is called when its tag is not needed any more.
func (l *link) forget(h *turn) {
	if h.link == l && l.table[h.tag] == h {
		h.stepOut()
		delete(l.table, h.tag)
		l.unlease(&h.terms)
		h.link = nil
	}
}

// fail closes the connection. All that needed it is notified.
func (l *link) fail(err error) {
	if l.closed {
		return
	}
	l.closed = true
	l.timer.Stop()
	l.endLines()
	close(l.wake)
	l.handOver()
	// A close by TLS takes its time where nobody answers.
	l.session.locks.group.Go(func() { l.end() })
	replies := l.replies
	l.replies = nil
	l.session.broken(l, err)
	for _, one := range replies {
		one.answered(errBroken, one.sent)
	}
}
