// The driver of the Go client: JSON lines in, JSON lines out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	rlock "rlock.invalid/clients/go"
)

// A request has all words of all requests; the pointers are those that may be absent.
type request struct {
	ID       int    `json:"id"`
	Do       string `json:"do"`
	Locks    string `json:"locks"`
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Cluster  bool   `json:"cluster"`
	User     string `json:"user"`
	Password string `json:"password"`
	TLS      bool   `json:"tls"`
	CA       string `json:"ca"`
	Tight    bool   `json:"tight"`
	Backend  string `json:"backend"`
	AskAgain int64  `json:"ask_again_ms"`
	Timeout  *int64 `json:"timeout"`
	Patience json.RawMessage
	Hold     string `json:"hold"`
	Key      string `json:"key"`
	Keys     []string
	Wait     *int64 `json:"wait"`
	Lease    *int64 `json:"lease"`
	Watchdog *bool  `json:"watchdog"`
	Max      *int64 `json:"max"`
	Mode     string `json:"mode"`
	Limit    *int   `json:"limit"`
	Permits  *int   `json:"permits"`
	Job      string `json:"job"`
	Acks     *int   `json:"acks"`
	AcksMs   *int64 `json:"acks_ms"`
	Acquire  int    `json:"acquire"`
	Body     int64  `json:"body"`
	Fail     bool   `json:"fail"`
	File     string `json:"file"`
	For      int64  `json:"for"`
	Does     string `json:"does"`
	Of       string `json:"of"`
	Ms       int64  `json:"ms"`
	Within   json.RawMessage
	Least    *int64 `json:"least"`
	Sticky   string `json:"sticky"`
	Use      string `json:"use"`
	Idle     *int64 `json:"idle"`
	Token    bool   `json:"token"`
	Times    int    `json:"times"`
}

type driver struct {
	mutex    sync.Mutex
	locks    map[string]*rlock.Locks
	clients  []io.Closer
	jobs     map[string]*rlock.Job
	holds    map[string]*rlock.Hold
	cancels  map[int]context.CancelFunc
	stickies map[string]*rlock.Sticky
	uses     map[string]*body
	over     chan struct{} // the input has ended
	out      *json.Encoder
	running  sync.WaitGroup
}

func main() {
	d := &driver{
		locks: map[string]*rlock.Locks{}, jobs: map[string]*rlock.Job{}, holds: map[string]*rlock.Hold{},
		cancels: map[int]context.CancelFunc{}, stickies: map[string]*rlock.Sticky{}, uses: map[string]*body{}, over: make(chan struct{}), out: json.NewEncoder(os.Stdout),
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		ctx, cancel := context.WithCancel(context.Background())
		d.mutex.Lock()
		d.cancels[r.ID] = cancel
		d.mutex.Unlock()
		d.running.Go(func() {
			defer cancel()
			ok, err := d.run(ctx, &r)
			d.answer(r.ID, ok, err)
		})
	}
	close(d.over)
	for _, locks := range d.locks {
		locks.Close()
	}
	d.running.Wait()
	for _, client := range d.clients {
		client.Close()
	}
}

func (d *driver) say(line map[string]any) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.out.Encode(line)
}

func (d *driver) answer(id int, ok map[string]any, err error) {
	if err == nil {
		if ok == nil {
			ok = map[string]any{}
		}
		d.say(map[string]any{"id": id, "ok": ok})
		return
	}
	line := map[string]any{"id": id, "error": word(err), "text": err.Error()}
	var refused *rlock.RefusedError
	if errors.As(err, &refused) {
		line["code"] = refused.Code
	}
	var taken *rlock.NotAcquiredError
	if errors.As(err, &taken) {
		line["key"] = taken.Key
		if line["held_by"] = nil; taken.HeldBy != "" {
			line["held_by"] = taken.HeldBy
		}
	}
	d.say(line)
}

func word(err error) string {
	for _, one := range []struct {
		err  error
		word string
	}{
		{context.Canceled, "cancelled"}, {rlock.ErrNotAcquired, "not_acquired"}, {rlock.ErrLost, "lost"},
		{rlock.ErrDeadlock, "deadlock"}, {rlock.ErrHeldByJob, "held_by_job"}, {rlock.ErrRefused, "refused"},
		{rlock.ErrConnection, "connection"}, {rlock.ErrClosed, "connection"}, {rlock.ErrArgument, "argument"},
	} {
		if errors.Is(err, one.err) {
			return one.word
		}
	}
	return "other"
}

func (d *driver) run(ctx context.Context, r *request) (map[string]any, error) {
	d.mutex.Lock()
	locks, hold, sticky := d.locks[r.Locks], d.holds[r.Hold], d.stickies[r.Sticky]
	d.mutex.Unlock()
	switch r.Do {
	case "hello":
		return map[string]any{"client": "go", "needs": needs}, nil
	case "open":
		return nil, d.open(r)
	case "cancel":
		d.mutex.Lock()
		defer d.mutex.Unlock()
		d.cancels[r.Acquire]()
		return nil, nil
	case "acquire":
		return d.acquire(ctx, r, locks)
	case "scope":
		return d.scope(ctx, r, locks)
	case "count":
		return d.count(ctx, r, locks)
	case "backend":
		if name := locks.Backend(); name != "" {
			return map[string]any{"backend": name}, nil
		}
		return map[string]any{"backend": nil}, nil
	case "close":
		return nil, locks.Close()
	case "sticky":
		return nil, d.sticky(r, locks)
	case "use":
		return d.use(r)
	case "use_token":
		return d.useToken(r)
	case "use_state":
		return d.useState(r)
	case "use_end":
		return nil, d.useEnd(r)
	case "use_many":
		return useMany(ctx, r, sticky)
	case "use_cancel":
		d.body(r.Use).cancel()
		return nil, nil
	case "sticky_close":
		return nil, sticky.Close()
	}
	if hold == nil {
		return nil, fmt.Errorf("%s: there is no hold %q", r.Do, r.Hold)
	}
	switch r.Do {
	case "release":
		return nil, hold.Release(ctx)
	case "renew":
		lease := 10 * time.Second // as of each that names none
		if r.Lease != nil {
			lease = ms(*r.Lease)
		}
		return nil, hold.Renew(ctx, lease)
	case "again":
		return nil, hold.Again()
	case "wanted":
		return map[string]any{"wanted": wanted(ctx, r, hold)}, nil
	case "give_way":
		return giveWay(ctx, r, hold)
	case "callback":
		d.callback(r, locks, hold)
		return nil, nil
	case "state":
		var lost *rlock.LostError
		if errors.As(hold.Err(), &lost) {
			return map[string]any{"lost": lost.Reason}, nil
		}
		return map[string]any{"lost": nil}, nil
	}
	return nil, fmt.Errorf("%s is not known here", r.Do)
}

func wanted(ctx context.Context, r *request, hold *rlock.Hold) bool {
	if r.Within == nil {
		return hold.Wanted()
	}
	var within int64
	json.Unmarshal(r.Within, &within)
	ctx, cancel := context.WithTimeout(ctx, ms(within))
	defer cancel()
	return hold.AwaitWanted(ctx) == nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
