package rlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Locks is what a program makes once for each process, and uses from all goroutines.
type Locks struct {
	router  router
	timeout time.Duration
	// One lock for all: the work is done by the server, and nobody holds it for long.
	mutex    sync.Mutex
	number   uint64
	held     map[string]*turn     // the last one of each key
	stays    map[*Sticky]struct{} // that are here, or that a use waits for
	closed   bool
	closing  context.Context // ends when Close is called
	stop     context.CancelFunc
	ended    context.Context // ends when all pending commands were answered, or nobody answered in time
	end      context.CancelFunc
	notified chan struct{} // closed when it was
	group    sync.WaitGroup
	timer    *time.Timer
	looks    time.Time // when the timer looks for requests whose time is over; zero: it does not
	spared   bool      // it was late, and looks again
	strict   bool      // it needs the module
	askEvery time.Duration
	patience time.Duration // zero: the server is not told any
}

// A Setting is one of the Locks themselves.
type Setting func(*Locks)

// Timeout bounds how long it takes to connect, and how long a request that does not wait may
// be without an answer: 5 s by default.
// It panics if d is not above 0.
func Timeout(d time.Duration) Setting {
	if d <= 0 {
		panic(fmt.Sprintf("rlock: Timeout(%v): it has to be above 0", d))
	}
	return func(l *Locks) { l.timeout = d }
}

// Patience is for how long this process may be silent: 30 s by default, and never less than the
// longest lease of its holds with the watchdog, nor than 300 ms. Who is silent for longer (a process that is stopped,
// a machine that is paused, a connection that leads nowhere) loses those of them that somebody waits
// for, with the reason silent. Without the module there is no such thing.
// It panics if d is not above 0.
func Patience(d time.Duration) Setting {
	if d <= 0 {
		panic(fmt.Sprintf("rlock: Patience(%v): it has to be above 0; NoHeartbeat is for none", d))
	}
	return func(l *Locks) { l.patience = d }
}

// NoHeartbeat has the server never take this process for silent, however long it is: a hold with the
// watchdog lasts as long as its connection is open.
func NoHeartbeat() Setting { return func(l *Locks) { l.patience = 0 } }

// NeedModule has every request be refused on a server without the rlock module, where the locks would
// otherwise use its function library.
func NeedModule() Setting { return func(l *Locks) { l.strict = true } }

// AskEvery is how often a server without the module is asked whether it has come: once a minute
// by default. It panics if d is not above 0.
func AskEvery(d time.Duration) Setting {
	if d <= 0 {
		panic(fmt.Sprintf("rlock: AskEvery(%v): it has to be above 0", d))
	}
	return func(l *Locks) { l.askEvery = d }
}

// New makes locks on the client's server. It takes the client's options, and no connection
// of its pool: the first request opens one more. Behind Sentinel that is to the master.
func New(client *redis.Client, settings ...Setting) *Locks {
	l := newLocks(settings)
	l.router = &single{newSession(l, ownOptions(client))}
	return l
}

func newLocks(settings []Setting) *Locks {
	l := &Locks{timeout: 5 * time.Second, askEvery: time.Minute, patience: 30 * time.Second, held: map[string]*turn{},
		stays: map[*Sticky]struct{}{}}
	l.closing, l.stop = context.WithCancel(context.Background())
	l.ended, l.end = context.WithCancel(context.Background())
	l.timer = time.AfterFunc(time.Hour, l.look)
	l.timer.Stop()
	for _, set := range settings {
		set(l)
	}
	return l
}

// TryLock acquires the lock if it is free, and fails with [ErrNotAcquired] if it is not.
func (l *Locks) TryLock(ctx context.Context, key string, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, nil, []string{key}, try(opts))
}

// Lock waits for the lock as long as ctx, or [Wait], allows. When ctx ends, so does the wait
// on the server.
func (l *Locks) Lock(ctx context.Context, key string, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, nil, []string{key}, opts)
}

// LockMany waits for several plain locks at once, and gets all of them or none. In a cluster
// they lie in one slot.
func (l *Locks) LockMany(ctx context.Context, keys []string, opts ...Option) (*Hold, error) {
	return l.acquire(ctx, nil, keys, opts)
}

// Do runs work while it holds the lock, which it waits for as [Locks.Lock] does. The context
// of work ends when the lock is lost, with a [*LostError] as its cause. Then Do waits for
// work to return, and fails with an error for which errors.Is(err, [ErrLost]) holds, joined
// with that of work.
func (l *Locks) Do(ctx context.Context, key string, work func(ctx context.Context, hold *Hold) error, opts ...Option) error {
	hold, err := l.Lock(ctx, key, opts...)
	return hold.do(ctx, err, work)
}

func try(opts []Option) []Option { return append(opts[:len(opts):len(opts)], tryOnce) }

func tryOnce(t *terms) {
	if t.bounded && t.wait > 0 {
		t.err = fmt.Errorf("%w: TryLock does not Wait", ErrArgument)
	}
	t.wait, t.bounded = 0, true
}

func (h *Hold) do(ctx context.Context, err error, work func(context.Context, *Hold) error) error {
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned { // by a panic, or runtime.Goexit, of work or of ctx
			h.end(context.Background())
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h.watch(cancel)
	err = work(ctx, h)
	returned = true
	return joined(h.end(context.WithoutCancel(ctx)), err)
}

// joined is what a scope fails with: by how it ended, and by its body.
func joined(ended, err error) error {
	switch {
	case err == nil:
		return ended
	case ended == nil, errors.Is(err, ended):
		return err
	}
	return errors.Join(ended, err)
}

// watch has cancel called when the hold is lost.
func (h *Hold) watch(cancel context.CancelCauseFunc) {
	h.locks.locked(func() { h.turn.onLost = cancel })
	if err := h.Err(); err != nil {
		cancel(err)
	}
}

// end releases it, however often it nests.
func (h *Hold) end(ctx context.Context) error {
	h.locks.locked(func() { h.turn.nested = 0 })
	return h.Release(ctx)
}

// Close releases every hold, ends every wait and closes the connections. The program's own
// client stays as it is. What is held is lost, with the reason closed.
func (l *Locks) Close() error {
	l.mutex.Lock()
	if l.closed {
		l.mutex.Unlock()
		l.wait()
		return nil
	}
	l.closed = true
	l.notified = make(chan struct{})
	for s := range l.stays {
		s.removeAll(ErrClosed)
	}
	for _, s := range l.router.sessions() {
		s.close()
	}
	l.notifyClose()
	l.timer.Stop()
	l.mutex.Unlock()
	l.stop()
	select {
	case <-l.notified:
	case <-time.After(l.timeout):
	}
	l.end()
	var sessions []*session
	l.locked(func() {
		sessions = l.router.sessions()
		for _, s := range sessions {
			if s.link != nil {
				s.link.fail(ErrClosed)
			}
		}
	})
	if l.wait() {
		for _, s := range sessions {
			s.acker.disconnect()
		}
	}
	return nil
}

// notifyClose wakes Close when the server has taken all pending commands that it would take: on another connection
// too, should this one have broken just then.
func (l *Locks) notifyClose() {
	if !l.closed {
		return
	}
	for _, s := range l.router.sessions() {
		for t := range s.pending {
			if refused := s.link != nil && t.again && !t.isSent; !refused {
				return
			}
		}
	}
	select {
	case <-l.notified:
	default:
		close(l.notified)
	}
}

// wait is for all goroutines to end. Code of the program that stands in one, or that calls this
// itself there, is not waited for.
func (l *Locks) wait() (all bool) {
	ended := make(chan struct{})
	go func() {
		l.group.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(l.timeout):
		return false
	}
}

// goes runs it in a goroutine that Close waits for.
func (l *Locks) goes(do func()) (begun bool) {
	l.locked(func() {
		if begun = l.ended.Err() == nil; begun {
			l.group.Go(do)
		}
	})
	return
}

// next is greater than any before.
func (l *Locks) next() uint64 {
	l.number++
	return l.number
}

func (l *Locks) lock() (unlock func()) {
	l.mutex.Lock()
	return l.mutex.Unlock
}

func (l *Locks) locked(do func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	do()
}

var process = func() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%.200s:%d:", host, os.Getpid())
}()

func newOwner() string { return process + rand.Text() }
