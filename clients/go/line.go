package rlock

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Waits on a server without the module: by trying, when a message says so or a lease can be over.

// A line is all waits of a session for the same lock in the same way. Only the first of them
// tries, so a release wakes one try of each process.
type line struct {
	link   *link
	id     string
	name   string // of its place in the lock's own queue
	waits  []*turn
	many   bool
	mode   mode
	keys   []string
	leave  []string // gives up the place
	trying *turn    // whose reply is on its way
	tries  int      // whose replies are
	placed bool     // the last try asked for a place
	ahead  int64    // how many places are before its own; -1: it has none
	crowd  bool     // others had places, when the server was last asked
	heard  []string // the channels that it listens to
	timer  *time.Timer
}

const (
	// Who has waited so long wants a turn, or comes where others have a place: it has one from then on,
	// which the lock's queue keeps for so long without a try.
	placeAfter = 100 * time.Millisecond
	placeLasts = "2000"
	// Messages can be lost, and a reply may be late of a try that came before a release.
	retryUnplaced = 700 * time.Millisecond
	retryPlaced   = 500 * time.Millisecond
	// No message says that some permits came back.
	retryPermits = 75 * time.Millisecond
	// A line that is empty listens for a while, for the next wait.
	restFor = 5 * time.Second
)

// wait asks for the hold by tries, as long as it has time.
func (l *link) wait(h *turn) {
	r := h.request
	if !r.until.IsZero() {
		left := time.Until(r.until)
		if left <= 0 {
			h.try(nil)
			return
		}
		h.timer = time.AfterFunc(left, func() {
			defer h.locks.lock()()
			if r.line != nil {
				// Only the server says that somebody has it, and that now.
				h.stepOut()
				h.try(nil)
			}
		})
	}
	n := l.lineOf(h)
	n.waits = append(n.waits, h)
	r.line = n
	if n.trying == nil && len(n.waits) == 1 {
		n.try()
	}
}

func (h *turn) lineID() string { return string(appendCommand(nil, h.acquisition("", "")...)) }

func (l *link) lineOf(h *turn) *line {
	id := h.lineID()
	n := l.lines[id]
	if n == nil {
		// The name outlives the connection, and so does the place.
		hash := fnv.New64a()
		hash.Write([]byte(id))
		n = &line{link: l, id: id, name: l.session.place + strconv.FormatUint(hash.Sum64(), 36), many: h.keys != nil,
			mode: h.terms.mode, keys: h.keyList(), ahead: -1}
		n.leave = append(h.cancel(), "PLACE", n.name)
		n.timer = time.AfterFunc(time.Hour, n.ring)
		n.timer.Stop()
		l.lines[id] = n
	}
	return n
}

// stepOut takes the hold out of its line.
func (h *turn) stepOut() {
	if h.request == nil || h.request.line == nil {
		return
	}
	n := h.request.line
	h.request.line = nil
	if h.timer != nil {
		h.timer.Stop()
	}
	if n.waits[0] == h {
		n.waits[0] = nil
		n.waits = n.waits[1:]
	} else {
		n.waits = slices.Delete(n.waits, slices.Index(n.waits, h), slices.Index(n.waits, h)+1)
	}
	if len(n.waits) == 0 && n.trying == nil {
		n.rest()
	}
}

// follow has the next wait of this session try behind the release of the hold, if it may be its turn.
func (l *link) follow(h *turn) {
	if l.backend != module && len(l.lines) > 0 {
		if n := l.lines[h.lineID()]; n != nil && n.ahead <= 0 {
			n.wake()
		}
	}
}

func (n *line) try() {
	h := n.waits[0]
	n.trying = h
	keep := "0"
	if n.placed = !n.many && (n.ahead >= 0 || n.crowd || time.Since(h.request.began) >= placeAfter); n.placed {
		keep = placeLasts
	}
	n.tries++
	n.timer.Reset(vary(retryUnplaced))
	h.try(n, "PLACE", n.name, keep)
}

// try asks once. The line, if it is one's, goes on with the reply.
func (h *turn) try(n *line, place ...string) {
	l, tag, r := h.link, h.tag, h.request
	r.tries++
	l.send(func(reply any, sent time.Time) {
		r.tries--
		if reply == errBroken || l.closed {
			return
		}
		refused, isRefused := reply.([]any)
		_, isError := reply.(replyError)
		switch {
		case h.link != l || h.tag != tag:
			if _, isGranted := reply.(int64); isGranted && h.state == over {
				h.leave(false) // it was refused for something else meanwhile
			}
		case isError && r.tries > 0: // a later try says what counts
		case !isRefused:
			h.stepOut()
			h.replied(reply, sent)
		case h.state == abandoned && r.tries == 0:
			h.refuse(h.notAcquired())
		}
		if n == nil {
			return
		}
		if n.tries--; n.tries == 0 {
			n.tried(reply, refused)
		}
	}, append(h.acquisition(h.owner, ms(h.terms.lease)), place...)...)
}

func (n *line) tried(reply any, refused []any) {
	before := n.trying
	n.trying = nil
	left := int64(-1)
	if len(refused) == 2 {
		left, _ = refused[0].(int64)
		ahead, _ := refused[1].(int64)
		n.ahead, n.crowd = max(ahead, -1), ahead < -1 || ahead > 0
		for _, h := range slices.Backward(slices.Clone(n.waits)) {
			if h.request.queued {
				break
			}
			h.stands()
		}
	} else if _, isGranted := reply.(int64); isGranted {
		n.ahead = -1
	}
	switch {
	case len(n.waits) == 0:
		n.rest()
	case n.waits[0] != before:
		n.try()
	default:
		defer n.link.gather()()
		if n.listen() {
			n.try() // a message may have come before
		} else {
			n.timer.Reset(n.pause(left))
		}
	}
}

// pause is how long to wait for a message before the next try.
func (n *line) pause(left int64) time.Duration {
	pause := retryUnplaced
	switch {
	case n.ahead >= 0:
		pause = retryPlaced
	case n.mode == limited:
		pause = retryPermits
	}
	pause = vary(pause)
	if left >= 0 && n.ahead <= 0 && left < int64(pause/time.Millisecond) {
		pause = time.Duration(left) * time.Millisecond
	}
	if n.crowd && !n.placed {
		pause = 0
	} else if !n.placed && !n.many {
		pause = min(pause, placeAfter-time.Since(n.waits[0].request.began))
	}
	return max(pause, 0)
}

// vary is so that not all try at once.
func vary(pause time.Duration) time.Duration {
	return pause + time.Duration((rand.Float64()*0.4-0.2)*float64(pause))
}

// wake is called when it should try now. A message that comes before the reply to a try was sent
// before that try.
func (n *line) wake() {
	if n.trying == nil && len(n.waits) > 0 {
		n.try()
	}
}

// ring is called by the timer.
func (n *line) ring() {
	defer n.link.session.locks.lock()()
	switch {
	case n.link.closed:
	case len(n.waits) > 0: // also where the reply to the last try is late
		n.try()
	case n.trying != nil:
		n.timer.Reset(retryUnplaced)
	default:
		n.hear(nil)
		if n.link.lines[n.id] == n {
			delete(n.link.lines, n.id)
		}
	}
}

// rest gives up its place when nobody waits any more.
func (n *line) rest() {
	if n.ahead >= 0 {
		n.ahead = -1
		n.link.send(func(any, time.Time) {}, n.leave...)
	}
	n.timer.Reset(restFor)
}

// listen subscribes to what it has to hear: while nobody has a place every release, else what is told
// to its own place. It returns whether there is anything new among that.
func (n *line) listen() bool {
	var channels []string
	prefix := "redisson_lock__channel:"
	if !n.many {
		channels = append(channels, prefix+braced(n.keys[0])+":"+n.name)
	}
	if n.mode == read || n.mode == write {
		prefix = "redisson_rwlock:"
	}
	for _, key := range n.keys {
		if channel := prefix + braced(key); n.ahead < 0 && !n.crowd && (!n.link.cluster || hashed(channel) == hashed(key)) {
			channels = append(channels, channel)
		}
	}
	return n.hear(channels)
}

func (n *line) hear(channels []string) (more bool) {
	l, before := n.link, n.heard
	n.heard = channels
	for _, channel := range before {
		if slices.Contains(channels, channel) {
			continue
		}
		l.heard[channel] = slices.DeleteFunc(l.heard[channel], func(other *line) bool { return other == n })
		if len(l.heard[channel]) == 0 {
			delete(l.heard, channel)
			l.send(func(any, time.Time) {}, l.word("UNSUBSCRIBE"), channel)
			l.replies[len(l.replies)-1].leaves = channel
		}
	}
	for _, channel := range channels {
		if slices.Contains(before, channel) {
			continue
		}
		more = true
		l.heard[channel] = append(l.heard[channel], n)
		if len(l.heard[channel]) == 1 {
			l.send(func(reply any, _ time.Time) {
				if err, refused := reply.(replyError); refused && !err.elsewhere() {
					l.mute(channel, err)
				}
			}, l.word("SUBSCRIBE"), channel)
		}
	}
	return more
}

// word is the command for channels, which lie in slots in a cluster.
func (l *link) word(command string) string {
	if l.cluster {
		return "S" + command
	}
	return command
}

// mute ends the waits that need a channel which this user may not hear.
func (l *link) mute(channel string, err replyError) {
	for _, n := range slices.Clone(l.heard[channel]) {
		n.heard = slices.DeleteFunc(n.heard, func(one string) bool { return one == channel })
		for _, h := range slices.Clone(n.waits) {
			h.stepOut()
			h.failed(err)
		}
	}
	delete(l.heard, channel)
}

// unheard is called when the server has ended a subscription, for the slot is another node's now.
func (l *link) unheard(channel string) {
	lines := l.heard[channel]
	delete(l.heard, channel)
	for _, n := range lines {
		n.heard = slices.DeleteFunc(n.heard, func(one string) bool { return one == channel })
		n.wake()
	}
}

// endLines is called when the connection is closed.
func (l *link) endLines() {
	for _, n := range l.lines {
		n.timer.Stop()
		for _, h := range n.waits {
			h.request.line = nil
			if h.timer != nil {
				h.timer.Stop()
			}
		}
	}
}
