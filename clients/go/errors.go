package rlock

import (
	"errors"
	"fmt"
	"strings"
)

// For errors.Is. Each has a type of its own too, for errors.As, with what is known of it.
var (
	ErrNotAcquired = errors.New("rlock: not acquired")           // [*NotAcquiredError]
	ErrLost        = errors.New("rlock: lost")                   // [*LostError]
	ErrDeadlock    = errors.New("rlock: deadlock")               // [*DeadlockError]
	ErrHeldByJob   = errors.New("rlock: held by the same job")   // [*HeldByJobError]
	ErrRefused     = errors.New("rlock: refused by the server")  // [*RefusedError]
	ErrConnection  = errors.New("rlock: no connection")          // [*ConnectionError]
	ErrClosed      = errors.New("rlock: these locks are closed") // after Close
	ErrArgument    = errors.New("rlock: argument")               // nothing was sent
	errReleased    = fmt.Errorf("%w: the hold was released", ErrArgument)
)

// Error is what all types of errors of this package have in common.
type Error interface {
	error
	rlock()
}

// NotAcquiredError says that somebody else has the lock, and had it for the whole wait.
type NotAcquiredError struct {
	Key    string
	HeldBy string // the owner that has it, if it is one of the same Locks
}

func (e *NotAcquiredError) Error() string {
	if e.HeldBy != "" {
		return fmt.Sprintf("rlock: %s: this program has it itself", e.Key)
	}
	return fmt.Sprintf("rlock: %s: somebody else has it", e.Key)
}

// LostError says that a hold ended before its release.
type LostError struct {
	Key string
	// Reason is connection, lease (its time passed), max (see [Max]) or closed, or what the
	// server says: expired, forced, deleted, evicted, flushed, overwritten, demoted, moved,
	// rebound, released, silent (see [Patience]).
	Reason string
}

func (e *LostError) Error() string { return fmt.Sprintf("rlock: %s was lost: %s", e.Key, e.Reason) }

// DeadlockError says that a wait would never have ended: each of those in Text waits for
// the next. Release something, and try again.
type DeadlockError struct{ Text string }

func (e *DeadlockError) Error() string { return "rlock: deadlock: " + e.Text }

// HeldByJobError says that the job has the key already, or waits for it. See [Hold.Again].
type HeldByJobError struct{ Key string }

func (e *HeldByJobError) Error() string {
	return fmt.Sprintf("rlock: %s: its job holds it, or waits for it", e.Key)
}

// RefusedError is an error of the server that is none of the others.
type RefusedError struct {
	Code string // such as NOREPLICAS, OOM, WRONGTYPE, WRONGMODE, WRONGLIMIT, NOPERM
	Text string
}

func (e *RefusedError) Error() string { return "rlock: " + e.Code + " " + e.Text }

// ConnectionError says that there was no connection in time. Err is what came last of it.
type ConnectionError struct{ Err error }

func (e *ConnectionError) Error() string {
	if e.Err == nil {
		return "rlock: no connection in time"
	}
	return "rlock: no connection: " + e.Err.Error()
}

func (e *ConnectionError) Unwrap() error { return e.Err }

func (e *NotAcquiredError) Is(target error) bool { return target == ErrNotAcquired }
func (e *LostError) Is(target error) bool        { return target == ErrLost }
func (e *DeadlockError) Is(target error) bool    { return target == ErrDeadlock }
func (e *HeldByJobError) Is(target error) bool   { return target == ErrHeldByJob }
func (e *RefusedError) Is(target error) bool     { return target == ErrRefused }
func (e *ConnectionError) Is(target error) bool  { return target == ErrConnection }

func (*NotAcquiredError) rlock() {}
func (*LostError) rlock()        {}
func (*DeadlockError) rlock()    {}
func (*HeldByJobError) rlock()   {}
func (*RefusedError) rlock()     {}
func (*ConnectionError) rlock()  {}

// replyError is an error as the server wrote it.
type replyError string

func (e replyError) Error() string { return string(e) }

func (e replyError) code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}

// public is the error as the program gets it.
func (e replyError) public() error {
	code, text, _ := strings.Cut(string(e), " ")
	switch {
	case code == "DEADLOCK":
		return &DeadlockError{text}
	case e.unknown() && strings.Contains(text, "RLOCK."):
		return noModule.public()
	}
	return &RefusedError{code, text}
}

// unknown says whether the server does not know the command.
func (e replyError) unknown() bool {
	return strings.HasPrefix(strings.ToUpper(string(e)), unknownCommand)
}

const unknownCommand = "ERR UNKNOWN COMMAND"

// noLibrary says whether the server has lost the library's functions, or the script.
func (e replyError) noLibrary() bool {
	return e.code() == "NOSCRIPT" || strings.HasPrefix(string(e), "ERR Function not found")
}

// isSyntax says whether the server does not know a word of it.
func (e replyError) isSyntax() bool { return strings.HasPrefix(string(e), "ERR syntax error") }

// isOlder says whether the server's module has no heartbeats.
func (e replyError) isOlder() bool {
	return e.unknown() && strings.HasPrefix(strings.TrimLeft(string(e[len(unknownCommand):]), " '`\""), heartbeat)
}

// lacks says whether the server has lost by what it was asked. That says nothing of any lock.
func (l *link) lacks(err replyError) bool {
	gone := l.backend == module && err.unknown() && strings.Contains(string(err), "RLOCK.")
	return err.noLibrary() || gone && !err.isOlder()
}

// said is the reply of the library, whose commands may be refused from inside.
func said(reply any) any {
	if err, refused := reply.(replyError); refused {
		text, isRefused := strings.CutPrefix(string(err), "ERR ")
		if isRefused && (strings.HasPrefix(text, "ACL failure") || strings.HasPrefix(text, "The user executing")) {
			return replyError("NOPERM " + text)
		}
	}
	return reply
}

// noMaster says whether the server says that it is no master now.
func (e replyError) noMaster() bool {
	switch e.code() {
	case "READONLY", "MASTERDOWN", "LOADING", "UNBLOCKED":
		return true
	}
	return false
}

// elsewhere says whether another node of the cluster is to be asked, or the same again.
func (e replyError) elsewhere() bool {
	switch e.code() {
	case "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN":
		return true
	}
	return false
}

// gone says whether there is nothing to release or to cancel any more.
func (e replyError) gone() bool { return e.code() == "NOTHELD" || e.code() == "WRONGTYPE" }
