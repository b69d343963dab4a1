package rlock

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// What a server has for locks: the module, or the library that does the same in Lua, as
// functions or as a script.
type backend uint8

const (
	unknown backend = iota
	script
	functions
	module
)

func (b backend) String() string { return [...]string{"", "script", "functions", "module"}[b] }

// Without its first line, which names it, the library is a script.
var (
	//go:embed rlock.lua
	library          string
	_, scriptText, _ = strings.Cut(library, "\n")
	scriptSHA        = func() string {
		sum := sha1.Sum([]byte(scriptText))
		return hex.EncodeToString(sum[:])
	}()
)

// Two ways to ask for the module. Not every user may use the first; the second is refused for its
// number of arguments before the server looks at the user's rights.
var (
	askByInfo = []string{"COMMAND", "INFO", "RLOCK.ACQUIRE"}
	askByCall = []string{"RLOCK.ACQUIRE"}
)

const noModule replyError = "ERR the server has no rlock module: load librlock.so (loadmodule), see the README"

var errModule = errors.New("the server has the module now")

// A final error is what no other attempt will mend.
type final struct{ replyError }

// learn asks what the server has, and loads the library where there is none. It was asked
// by askByInfo, with this reply.
func (l *link) learn(ctx context.Context, info any, strict bool) error {
	say := func(words ...string) any {
		replies, err := l.ask(ctx, words)
		if err != nil {
			return err
		}
		return replies[0]
	}
	l.question = askByInfo
	if _, refused := info.(replyError); refused {
		l.question = askByCall
		info = say(askByCall...)
	}
	switch err, refused := info.(error); {
	case hasModule(info):
		l.backend = module
		return nil
	case refused && !isReply(err):
		return err
	case strict:
		return final{noModule}
	}
	reply := say("FCALL_RO", "rlock1_version", "0")
	if err, _ := reply.(replyError); err.noLibrary() {
		reply = say("FUNCTION", "LOAD", library)
	}
	err, refused := reply.(error)
	if !refused || strings.Contains(err.Error(), "already exists") {
		l.backend = functions
		return nil
	}
	if said, _ := err.(replyError); said.unknown() || said.code() == "NOPERM" {
		reply = say("SCRIPT", "LOAD", scriptText)
		if err, refused = reply.(error); !refused {
			l.backend = script
			return nil
		}
		if said, _ := err.(replyError); said.unknown() || said.code() == "NOPERM" {
			return final{replyError(said.code() + " the server has no rlock module, and this user may not FUNCTION " +
				"LOAD or SCRIPT LOAD: an administrator runs redis-cli -x FUNCTION LOAD <rlock.lua, and gives the user " +
				"+fcall +fcall_ro; see the README")}
		}
	}
	if said, _ := err.(replyError); isReply(err) && !said.noMaster() && said.code() != "BUSY" {
		return final{said}
	}
	return err
}

func isReply(err error) bool {
	_, is := err.(replyError)
	return is
}

// hasModule says whether the reply to one of the two questions is that of a server with the module.
func hasModule(reply any) bool {
	switch reply := reply.(type) {
	case []any:
		return len(reply) > 0 && reply[0] != nil
	case replyError:
		return !reply.unknown()
	}
	return false
}

// askForModule asks again whether the module has come. If so a new connection goes on by it.
func (l *link) askForModule() {
	l.send(func(reply any, _ time.Time) {
		if hasModule(reply) {
			l.fail(errModule)
		}
	}, l.question...)
}

// Backend says what the server has for locks: "module", "functions", "script", or "" while that
// is not known. In a cluster it is what the node has that has least.
func (l *Locks) Backend() string {
	defer l.lock()()
	return l.backend().String()
}

func (l *Locks) backend() backend {
	least := unknown
	for _, s := range l.router.sessions() {
		if s.backend != unknown && (least == unknown || s.backend < least) {
			least = s.backend
		}
	}
	return least
}

// Once in a process.
var logged [module]atomic.Bool

// learnt logs what the server has, where that is news.
func (s *session) learnt(b backend) {
	s.backend = b
	if b != module && !logged[b].Swap(true) {
		// The handler is the program's code.
		go slog.Warn("rlock: the server has no rlock module. Not to be had: the order of waiters and instant hand-over, "+
			"the server's watchdog, notice of a loss, detection of deadlocks", "backend", b.String())
	}
}

// wire is what a command is on this connection.
func (l *link) wire(words []string) []string {
	if l.backend != module && len(words) > 1 && strings.HasPrefix(words[0], "RLOCK.") {
		return l.call(words)
	}
	return words
}

// call is a command of the module as a call of the library.
func (l *link) call(words []string) []string {
	name := strings.ToLower(strings.TrimPrefix(words[0], "RLOCK."))
	keys, rest := words[1:2], words[2:]
	if name[0] == 'm' {
		n, _ := strconv.Atoi(words[1])
		keys, rest = words[2:2+n], words[2+n:]
	}
	name = "rlock1_" + name
	declared := declare(name, keys)
	n := strconv.Itoa(len(keys) + len(declared))
	out := make([]string, 0, len(words)+len(declared)+4)
	if l.backend == functions {
		out = append(out, "FCALL", name, n)
	} else {
		out = append(out, "EVALSHA", scriptSHA, n)
	}
	out = append(append(out, keys...), declared...)
	if l.backend == script {
		if l.cluster {
			out = append(out, "CLUSTER")
		}
		out = append(out, name)
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case "NOTIFY":
			i += 2
		case "IFTOKEN": // the owner is that of this hold alone
			i++
		case "WATCHDOG":
		default:
			out = append(out, rest[i])
		}
	}
	return out
}

// Longer keys are not said several times: a server may be set to close such a connection.
const mostDeclared = 1 << 17

// declare names the keys that belong to the locks, for some servers let a script touch no others.
func declare(function string, keys []string) (names []string) {
	var prefixes []string
	switch strings.TrimPrefix(strings.TrimPrefix(function, "rlock1_"), "m") {
	case "acquire":
		prefixes = []string{"redisson_lock_token:", "rlock1_queue:", "rlock1_places:"}
	case "release", "cancel":
		prefixes = []string{"rlock1_queue:", "rlock1_places:"}
	}
	bytes := 0
	for _, key := range keys {
		bytes += len(key)
	}
	if bytes > mostDeclared {
		return nil
	}
	for _, key := range keys {
		for _, prefix := range prefixes {
			if name := prefix + braced(key); hashed(name) == hashed(key) {
				names = append(names, name)
			}
		}
	}
	return names
}

// braced is a key as it stands in the names of what belongs to it.
func braced(key string) string {
	if strings.Contains(key, "{") {
		return key
	}
	return fmt.Sprintf("{%s}", key)
}
