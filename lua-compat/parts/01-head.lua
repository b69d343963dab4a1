#!lua name=rlock1
--
-- rlock as a function library: the same locks, for servers that load no module
-- (Redis 7.0 and newer, Valkey). Without the first line it is a script for EVAL, whose
-- first argument names the function, for any server. README.md says how to use both. Where
-- the module is loaded too, each function hands its arguments to the module's command.
--
-- The number in the names is that of the agreement with the clients: two versions can be
-- loaded side by side.
--
-- Made from parts/ by `make lua`: change it there.
--
-- A call goes through four steps. It reads its arguments, looks at the keys (`look`),
-- decides, and notes what is to be written (`work`). Only then are the notes carried
-- out, so that a refusal, an error or a missing permission leaves nothing half done.
--
-- A plain lock is a hash `key` with one field, owner = holds; its TTL is the lease. A
-- read/write lock has fields `mode` (read or write), owner = read holds and owner:write
-- = write holds, and beside it a lease key for each read hold. A reader whose lease
-- keys are gone holds nothing, though its field may be there. Of a lock with permits `mode`
-- says how many are out, and each owner's field how many it has, and until when.

-- How long a lease may be, ms: what a double counts exactly.
local MOST_MS = 2 ^ 53 - 1
local LONGEST_OWNER = 512
local MOST_KEYS = 1024
-- An owner nests no more read holds than this: each has a lease key.
local MOST_READS = 1024
-- The greatest limit of permits.
local MOST_PERMITS = 1000000
-- A reader's lease keys are looked at from either end, so many: a count of holds may
-- be anything that somebody has written.
local FROM_EITHER_END = 32
-- The end of what has no end. (While a library is loaded there is no `math` yet.)
local NEVER = 1 / 0

-- An EVAL script keeps nothing between two calls.
local IS_LIBRARY = redis.register_function ~= nil

local VERSION = '0.9.0'
