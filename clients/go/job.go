package rlock

import (
	"context"
	"time"
)

// A Job is work that takes several locks, one after the other. They have one owner, which is
// what the server sees deadlocks by. A key that a job has already, or waits for, is refused:
// [ErrHeldByJob]; see [Hold.Again].
type Job struct {
	Owner string
	locks *Locks
	keys  map[string]*turn
}

// Job makes a job. It needs no end.
func (l *Locks) Job() *Job { return &Job{newOwner(), l, map[string]*turn{}} }

// TryLock is [Locks.TryLock] for the job.
func (j *Job) TryLock(ctx context.Context, key string, opts ...Option) (*Hold, error) {
	return j.locks.acquire(ctx, j, []string{key}, try(opts))
}

// Lock is [Locks.Lock] for the job.
func (j *Job) Lock(ctx context.Context, key string, opts ...Option) (*Hold, error) {
	return j.locks.acquire(ctx, j, []string{key}, opts)
}

// LockMany is [Locks.LockMany] for the job.
func (j *Job) LockMany(ctx context.Context, keys []string, opts ...Option) (*Hold, error) {
	return j.locks.acquire(ctx, j, keys, opts)
}

// Do is [Locks.Do] for the job.
func (j *Job) Do(ctx context.Context, key string, work func(ctx context.Context, hold *Hold) error, opts ...Option) error {
	hold, err := j.Lock(ctx, key, opts...)
	return hold.do(ctx, err, work)
}

// admit enters a request of the job. It waits while the release of an earlier hold of a key
// is under way, which would end the new one too: they have one owner.
func (j *Job) admit(ctx context.Context, h *turn) error {
	var expired <-chan time.Time
	for {
		freed, err := j.enter(h)
		if freed == nil {
			return err
		}
		if ends := h.request.ends; !ends.IsZero() {
			expired = time.After(time.Until(ends))
		}
		select {
		case <-freed:
		case <-expired:
			return &ConnectionError{errBroken}
		case <-ctx.Done():
			return ctx.Err()
		case <-j.locks.closing.Done():
			return ErrClosed
		}
	}
}

func (j *Job) enter(h *turn) (freed chan struct{}, err error) {
	defer j.locks.lock()()
	for _, key := range h.keyList() {
		switch other := j.keys[key]; {
		case other == nil:
		case other.leaving > 0 || other.state == abandoned:
			if other.freed == nil {
				other.freed = make(chan struct{})
			}
			return other.freed, nil
		default:
			return nil, &HeldByJobError{key}
		}
	}
	for _, key := range h.keyList() {
		j.keys[key] = h
	}
	return nil, nil
}

// free lets the job ask for the keys again.
func (h *turn) free() {
	if h.job == nil || h.leaving > 0 {
		return
	}
	for _, key := range h.keyList() {
		switch behind := h.behind; {
		case h.job.keys[key] != h:
		case behind != nil && behind.leaving > 0:
			h.job.keys[key] = behind
		default:
			delete(h.job.keys, key)
		}
	}
	if h.freed != nil {
		close(h.freed)
		h.freed = nil
	}
}
