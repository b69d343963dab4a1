package rlock

import "context"

// A router knows which session a key belongs to.
type router interface {
	session(ctx context.Context, key string) (*session, error)
	// sessions are all that there are; called with the lock of the Locks held.
	sessions() []*session
	// elsewhere is a session for what another node has to be asked; nil: there is no other.
	elsewhere() *session
}

// single is the router to one server.
type single struct{ only *session }

func (r *single) session(context.Context, string) (*session, error) { return r.only, nil }
func (r *single) sessions() []*session                              { return []*session{r.only} }
func (r *single) elsewhere() *session                               { return nil }
