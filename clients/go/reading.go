package rlock

import (
	"errors"
	"os"
	"time"
)

// Who reads a connection. A goroutine of its own does, so that the program can stop nothing. But
// to hand a reply to another goroutine takes longer than to read it: so while calls follow each
// other briskly, one at a time, that one rests, and each call reads its own reply.

type reading uint8

const (
	byReader reading = iota
	byNobody         // nothing is under way
	byCaller
)

// So soon after the one before is a command of a program that will soon have the next, after some
// of them in a row. Then the reader looks again after so long. Where it had to interrupt a call
// the machine is too busy for this: the more of them it takes until the next time.
const (
	brisk    = time.Millisecond
	inARow   = 16
	looks    = 2 * time.Millisecond
	tooEarly = 1000
)

// quiet says whether there is nothing that could be answered, or has come already. It is for who reads.
func (l *link) quiet() bool {
	return len(l.replies) == 0 && len(l.session.requests) == 0 && l.in.Buffered() == 0 && !l.closed
}

// led has a call send its command. Read is to be called without the lock then: it reads the reply, if
// that is for the call to do.
func (s *session) led(send func()) (read func()) {
	l := s.link
	if l == nil || l.reading != byNobody || !l.quiet() {
		send()
		return func() {}
	}
	l.reading = byCaller
	l.calls++
	send()
	if l.closed || len(l.replies) != 1 {
		l.handOver()
		return func() {}
	}
	return l.readOne
}

// readOne reads one reply, if that is short and comes soon. The reader does what remains.
func (l *link) readOne() {
	isThere, err := l.hasLine()
	defer l.session.locks.lock()()
	if l.interrupted {
		l.interrupted = false
		l.conn.SetReadDeadline(time.Time{})
	}
	if isThere || err != nil {
		var reply any
		if err == nil {
			reply, err = readReply(l.in)
		}
		l.take(reply, err)
	}
	if l.reading = byNobody; !l.quiet() {
		l.handOver()
	}
}

// hasLine waits for a reply; whether the whole of it is there, and of the kinds that have one line.
func (l *link) hasLine() (bool, error) {
	if _, err := l.in.Peek(1); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
		return false, err
	}
	there, _ := l.in.Peek(l.in.Buffered())
	switch there[0] {
	case ':', '_', '+', '-':
		return there[len(there)-1] == '\n', nil
	}
	return false, nil
}

// handOver has the reader read.
func (l *link) handOver() {
	l.reading = byReader
	select {
	case l.resume <- struct{}{}:
	default:
	}
}

// rest is until the reader has to read again; whether it does. So many calls have read until now.
func (l *link) rest(calls int) bool {
	timer := time.NewTimer(looks)
	defer timer.Stop()
	for {
		select {
		case <-l.resume:
		case <-timer.C:
			timer.Reset(looks)
		}
		rests, over := true, false
		l.session.locks.locked(func() {
			switch {
			case l.closed:
				over = true
			case l.reading == byReader:
				rests = false
			case l.calls != calls:
			case l.reading == byNobody:
				l.reading, rests = byReader, false
			default:
				// A call that reads heeds nothing else.
				l.interrupted = true
				l.briskly = -tooEarly
				l.conn.SetReadDeadline(time.Unix(1, 0))
			}
			calls = l.calls
		})
		if over || !rests {
			return !over
		}
	}
}
