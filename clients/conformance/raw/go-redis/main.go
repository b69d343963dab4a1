// What hurts clients without QUEUE, NOTIFY, ONCE and CANCEL does not hurt go-redis.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const lease = time.Minute

var (
	ctx    = context.Background()
	admin  = redis.NewClient(options())
	failed = false
	owners = 0
)

func options() *redis.Options { return &redis.Options{Addr: "127.0.0.1:" + os.Args[1]} }

func line(number int, what string, good bool, seen string, words ...any) {
	word := "ok"
	if !good {
		word, failed = "not ok", true
	}
	fmt.Println(word, number, what+":", fmt.Sprintf(seen, words...))
}

func owner() string {
	owners++
	return fmt.Sprintf("check:%d:%d", os.Getpid(), owners)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func ask(words ...any) any { return must(admin.Do(ctx, words...).Result()) }

func take(key string) { ask("RLOCK.ACQUIRE", key, "other", lease.Milliseconds()) }
func give(key string) { ask("RLOCK.RELEASE", key, "other") }

func info(key string) map[any]any { return ask("RLOCK.INFO", key).(map[any]any) }

func holder(key string) map[any]any {
	for _, one := range info(key)["holders"].([]any) {
		return one.(map[any]any)
	}
	return map[any]any{}
}

func queue(key string) []any { return ask("RLOCK.WAITERS", key).([]any) }

// place is where it stands in the queue, and by which connection.
func place(key, mine string) (int, any) {
	for i, one := range queue(key) {
		if waiter := one.(map[any]any); waiter["owner"] == mine {
			return i, waiter["client-id"]
		}
	}
	return -1, nil
}

func until(condition func() bool) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return false
}

func waiting(key string, many int) bool {
	return until(func() bool { return len(queue(key)) == many })
}

type end struct {
	token    int64
	notified chan []string
	err      error
}

func acquire(s *Session, ctx context.Context, key, mine string, wait time.Duration) chan end {
	done := make(chan end, 1)
	go func() {
		token, notified, err := s.Acquire(ctx, key, mine, lease, wait)
		done <- end{token, notified, err}
	}()
	return done
}

func soon[T any](from chan T) (value T) {
	select {
	case value = <-from:
	case <-time.After(20 * time.Second):
	}
	return
}

func connections() int {
	text := must(admin.Info(ctx, "clients").Result())
	_, text, _ = strings.Cut(text, "connected_clients:")
	return must(strconv.Atoi(strings.Fields(text)[0]))
}

func manyWaits(number int, s *Session) {
	var group sync.WaitGroup
	var mutex sync.Mutex
	tokens, freed := map[int64]bool{}, 0
	for i := range 200 {
		take(fmt.Sprint("many:", i))
	}
	before := connections()
	for i := range 200 {
		key, mine := fmt.Sprint("many:", i), owner()
		wait := acquire(s, ctx, key, mine, lease)
		group.Add(1)
		go func() {
			defer group.Done()
			end := soon(wait)
			left, err := s.Do(ctx, "RLOCK.RELEASE", key, mine)
			mutex.Lock()
			defer mutex.Unlock()
			tokens[end.token] = end.token > 0
			if err == nil && left == int64(0) {
				freed++
			}
		}()
	}
	for i := range 200 {
		waiting(fmt.Sprint("many:", i), 1)
	}
	beside, err := s.Do(ctx, "SET", "beside", "1")
	grown := connections() - before
	for i := range 200 {
		give(fmt.Sprint("many:", i))
	}
	group.Wait()
	line(number, "200 waits on two connections, beside other commands",
		err == nil && beside == "OK" && len(tokens) == 200 && freed == 200 && grown == 0,
		"SET %v, %d granted, %d released, %d more connections", beside, len(tokens), freed, grown)
}

func retried(number int, s *Session) {
	key, mine := "again", owner()
	take(key)
	first := acquire(s, ctx, key, mine, lease)
	waiting(key, 1)
	last := acquire(s, ctx, key, owner(), lease)
	waiting(key, 2)
	again := acquire(s, ctx, key, mine, lease)
	older := soon(first).err
	at, _ := place(key, mine)
	give(key)
	token, holds := soon(again).token, holder(key)["holds"]
	ask("RLOCK.RELEASE", key, mine)
	after := soon(last).token
	line(number, "a queued request that is retried keeps its place",
		older != nil && at == 0 && token > 0 && holds == int64(1) && after > token,
		"the older: %.20v; place %d, token %d, %v hold, the one behind %d", older, at, token, holds, after)
}

// go-redis waits 3 s for a reply, closes its connection, and sends the command again, three times.
func blockedForLonger(number int, s *Session) {
	key, mine, behind := "block", owner(), owner()
	take(key)
	blocked := make(chan any, 1)
	go func() {
		reply, err := redis.NewClient(options()).Do(ctx, "RLOCK.ACQUIRE", key, mine, lease.Milliseconds(), "BLOCK", 10_000, "ONCE").Result()
		if err != nil {
			reply = err
		}
		blocked <- reply
	}()
	waiting(key, 1)
	last := acquire(s, ctx, key, behind, lease)
	_, first := place(key, mine)
	again := until(func() bool { _, by := place(key, mine); return by != nil && by != first })
	at, _ := place(key, mine)
	give(key)
	reply := soon(blocked)
	token, _ := reply.(int64)
	holds := holder(key)["holds"]
	line(number, "BLOCK longer than the time-out is sent again by a new connection: in its place",
		again && at == 0 && token > 0 && holds == int64(1), "place %d, token %v, %v hold", at, reply, holds)
	ask("RLOCK.RELEASE", key, mine)
	soon(last)
}

func lostReply(number int, s *Session) {
	losing := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[2]})
	reply, err := losing.Do(ctx, "RLOCK.ACQUIRE", "cut:once", owner(), lease.Milliseconds(), "ONCE").Result()
	held := holder("cut:once")
	line(number, "the reply is lost, the request that is retried has the token",
		err == nil && held["token"] == reply && held["holds"] == int64(1), "token %v, %v hold", reply, held["holds"])
}

func givesUp(number int, s *Session) {
	take("up")
	mine := owner()
	wait := acquire(s, ctx, "up", mine, lease)
	waiting("up", 1)
	ended, _ := s.Do(ctx, "RLOCK.CANCEL", "up", mine)
	end, left := soon(wait), len(queue("up"))
	impatient := options()
	impatient.ReadTimeout, impatient.MaxRetries = 300*time.Millisecond, -1
	err := redis.NewClient(impatient).Do(ctx, "RLOCK.ACQUIRE", "up", owner(), 1000, "BLOCK", 0).Err()
	byBlock := waiting("up", 0)
	second := must(Open(ctx, *options()))
	acquire(second, ctx, "up", owner(), lease)
	there := waiting("up", 1)
	second.Close()
	byClose := waiting("up", 0)
	give("up")
	mode := info("up")["mode"]
	line(number, "who gives up leaves no waiter: CANCEL, a time-out that closes the connection, a close",
		ended == int64(1) && end.err == nil && end.token == 0 && left == 0 && err != nil && byBlock && there && byClose && mode == "free",
		"CANCEL %v, %d left; BLOCK: %.20v, gone: %v; closed, gone: %v; then %v", ended, left, err, byBlock, byClose, mode)
}

func cancelled(number int, s *Session) {
	take("cancel")
	ctx, cancel := context.WithCancel(ctx)
	wait := acquire(s, ctx, "cancel", owner(), 0)
	there := waiting("cancel", 1)
	cancel()
	end, left := soon(wait), len(queue("cancel"))
	pong, _ := s.Do(context.Background(), "PING")
	line(number, "a context that is cancelled ends the wait in the server",
		there && end.err == context.Canceled && left == 0 && pong == "PONG",
		"waited: %v, %v, %d left; the connection goes on: %v", there, end.err, left, pong)
}

func forceOne(number int, s *Session) {
	client, notified := must(s.Do(ctx, "CLIENT", "ID")), map[string]chan []string{}
	for _, key := range []string{"force:1", "force:2", "force:3"} {
		_, losses, err := s.Acquire(ctx, key, owner(), lease, 0, "WATCHDOG")
		notified[key] = must(losses, err)
	}
	ask("RLOCK.FORCE", "force:2")
	lost := strings.Join(soon(notified["force:2"]), " ")
	time.Sleep(500 * time.Millisecond) // a connection that is to be closed would be by now
	one, three := holder("force:1")["watchdog"], holder("force:3")["watchdog"]
	same := must(s.Do(ctx, "CLIENT", "ID"))
	line(number, "FORCE of one of three watchdog holds leaves two",
		strings.HasPrefix(lost, "lost ") && strings.HasSuffix(lost, " forced") && one == client && three == client && same == client,
		"notified %q, still held by %v and %v, same connection: %v", lost, one, three, same == client)
}

func isOver(s *Session) bool {
	select {
	case <-s.Lost:
		return true
	case <-time.After(20 * time.Second):
		return false
	}
}

func lossIsNotified(number int, s *Session) {
	token, notified, err := s.Acquire(ctx, "loss:1", owner(), lease, 0)
	_, _, second := s.Acquire(ctx, "loss:2", owner(), lease, 0, "WATCHDOG")
	ask("DEL", "loss:1")
	lost := strings.Join(soon(notified), " ")
	ask("CLIENT", "KILL", "ID", must(s.Do(ctx, "CLIENT", "ID")))
	byCommands := isOver(s)
	free := until(func() bool { return info("loss:2")["mode"] == "free" })
	after := must(Open(ctx, *options()))
	newer, _, _ := after.Acquire(ctx, "loss:1", owner(), lease, 0)
	ask("CLIENT", "KILL", "TYPE", "pubsub")
	byMessages := isOver(after)
	line(number, "a loss is notified, and so is the loss of either connection",
		err == nil && second == nil && strings.HasSuffix(lost, " deleted") && byCommands && free && newer > token && byMessages,
		"%q; over: %v, its watchdog hold ended: %v; a new session has %d, and is over too: %v", lost, byCommands, free, newer, byMessages)
}

func oneOwner(number int, s *Session) {
	ann, bob := owner(), owner()
	first := soon(acquire(s, ctx, "one:1", ann, 0)).token
	soon(acquire(s, ctx, "one:2", bob, 0))
	second := soon(acquire(s, ctx, "one:1", ann, 0)).token
	acquire(s, ctx, "one:2", ann, lease)
	waiting("one:2", 1)
	err := soon(acquire(s, ctx, "one:1", bob, lease)).err
	line(number, "one owner for each piece of work: no HELD, and DEADLOCK is raised",
		first > 0 && first == second && err != nil && strings.HasPrefix(err.Error(), "DEADLOCK"),
		"the same token: %v; %.60v", first == second, err)
}

// Why a session of go-redis has two connections.
func messageForReply() {
	conn := redis.NewClient(options()).Conn()
	must(conn.Do(ctx, "SUBSCRIBE", "own").Result())
	ask("PUBLISH", "own", "hello")
	reply := fmt.Sprint(must(conn.Do(ctx, "PING").Result()))
	line(0, "on one connection a message is taken for the reply to the next command",
		reply == "[message own hello]", "PING got %s", reply)
}

func main() {
	checks := []struct {
		number int
		check  func(int, *Session)
	}{
		{1, manyWaits}, {2, retried}, {2, blockedForLonger}, {3, lostReply}, {4, givesUp},
		{5, cancelled}, {6, forceOne}, {7, lossIsNotified}, {8, oneOwner},
	}
	messageForReply()
	for _, one := range checks {
		session := must(Open(ctx, *options()))
		one.check(one.number, session)
		session.Close()
	}
	if failed {
		os.Exit(1)
	}
}
