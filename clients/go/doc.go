// Package rlock takes distributed locks from a Redis or Valkey server: from the rlock module, or on
// a server without it by a library of functions that does the same ([Locks.Backend]).
//
//	locks := rlock.New(client) // a *redis.Client; once for each process
//	defer locks.Close()
//
//	err := locks.Do(ctx, "jobs", func(ctx context.Context, hold *rlock.Hold) error {
//		return store(ctx, hold.Token) // ctx ends when the lock is lost
//	})
//
// One [Locks] has one connection to each server, over which all goroutines wait and hold.
// The module renews a hold as long as that connection is open (unless [NoWatchdog] says
// otherwise). When the connection breaks, all these holds are lost at once and for good. So are those that
// somebody waits for when the process was silent for longer than its [Patience]. Without the
// module the session renews them, and they outlive the connection.
//
// A loss is notified by [Hold.Lost], by [Hold.Err], and by the context that [Locks.Do] gives,
// whose cause is then a [*LostError]. A process that is paused does not notice it: let
// storage refuse a smaller [Hold.Token] than it has seen.
//
// A long job can stop between two pieces when somebody waits for its lock: [Hold.Wanted]. Or it gives way, and goes on
// behind them: [Hold.GiveWay].
//
// Call sites that take the same lock again and again let it stay between its uses: [Locks.Sticky].
package rlock
