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

-- ERRORS: one line of at most 512 bytes, which says what was wrong and what to do.

local WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'

-- Ends the call with an error reply. What was noted for writing until then is
-- written: the fields of readers that died are gone whatever was asked.
local function refuse(line, ...)
    if select('#', ...) > 0 then line = line:format(...) end
    error({ refusal = line:sub(1, 512) })
end

-- In a cluster, while a slot is on its way from one node to another, the server lets no
-- script at keys that are not here. The server's own words for such a command.
local TRY_AGAIN = 'TRYAGAIN Multiple keys request during rehashing of slot'

local function is_elsewhere(reply)
    local err = type(reply) == 'table' and reply.err
    local says = function(what) return err:find(what, 1, true) ~= nil end
    return err and (says('non local key') or says('during rehashing of the slot'))
end

-- What the server said. Redis before 7.0 puts the script's line and a dash before it.
local function said(reply)
    if is_elsewhere(reply) then return TRY_AGAIN end
    local line = reply.err:gsub('^@user_script: ?%d+: ', ''):gsub('^%-', '')
    return line:find('^%u+ ') and line or 'ERR ' .. line
end

-- What the server replied; nil where a key is of another type. Any other refusal, such as
-- for want of permission, ends the call, and nothing is written: what cannot be read must
-- not be taken for gone.
local function checked(reply)
    if type(reply) ~= 'table' or not reply.err then return reply end
    if reply.err:find('WRONGTYPE', 1, true) then return nil end
    error({ fault = said(reply) })
end

local function ask(...) return checked(redis.pcall(...)) end

-- A name as it can stand in a line: quoted, what is not printable ASCII escaped, cut
-- when it is long.
local function shown(name)
    local text = "'"
    for at = 1, #name do
        if #text > 100 then
            text = text .. '...'
            break
        end
        local byte = name:byte(at)
        if byte == 39 or byte == 92 then
            text = text .. '\\' .. string.char(byte)
        elseif byte >= 32 and byte <= 126 then
            text = text .. string.char(byte)
        else
            text = text .. string.format('\\x%02x', byte)
        end
    end
    return text .. "'"
end

-- The ways to hold a lock, as errors name them; what to say for each; and what another one
-- does not mix with.
local HELD = {
    exclusive = 'as a plain lock', read = 'for READ', write = 'for WRITE', permits = 'by permits',
}
local ADVICE = {
    exclusive = 'leave the mode out', read = 'say READ', write = 'say WRITE',
    permits = 'say PERMITS',
}
local KIND = {
    exclusive = 'a plain lock', read = 'READ and WRITE', write = 'READ and WRITE',
    permits = 'permits',
}

local function other_layout(key)
    return WRONG_TYPE .. ': ' .. shown(key) ..
        ' is a hash, but not laid out as a lock; use another name'
end

local function without_ttl(key)
    return WRONG_TYPE .. ': ' .. shown(key) .. " has no TTL, it may be somebody's data; " ..
        'PEXPIRE it if it is a lock, DEL it if nobody needs it, or use another name'
end

local function refuse_mode(key, owner, asked, held_for)
    refuse('WRONGMODE owner %s holds %s %s, which does not mix with %s: release it first, or ' ..
        'use another name', shown(owner), shown(key), HELD[held_for], KIND[asked])
end

local function refuse_not_held(key, owner, asked, held_for)
    key, owner = shown(key), shown(owner)
    if not held_for then
        refuse('NOTHELD owner %s does not hold %s: its lease ended, it was released, or ' ..
            'never acquired', owner, key)
    end
    refuse('NOTHELD owner %s does not hold %s %s, it holds it %s: %s', owner, key, HELD[asked],
        HELD[held_for], ADVICE[held_for])
end

local function refuse_deeper(key, owner)
    refuse('ERR owner %s cannot nest any deeper on %s: release a hold first',
        shown(owner), shown(key))
end

-- NAMES of what belongs to a lock. They are Redisson's.

-- What most names of a lock are made of, of the key that was asked for last: a call asks for
-- the same one many times.
--   name      `{key}`; a name that has a brace already is used as it is
--   is_whole  it has no brace at all, so all that is named after it lies in its slot
--   memory    begins what the library remembers of it: no two keys have it in common
local stem = {}
local function stem_of(key)
    if stem.key ~= key then
        local is_whole = not key:find('[{}]')
        stem = {
            key = key,
            name = not is_whole and key:find('{', 1, true) and key or '{' .. key .. '}',
            is_whole = is_whole,
            memory = #key .. ':' .. key,
        }
    end
    return stem
end

local function prefixed(prefix, key) return prefix .. ':' .. stem_of(key).name end

-- The lease key of an owner's read hold number `index`.
local function lease_key(key, owner, index)
    -- Put together without `%s`, which ends a name at a zero byte.
    return stem_of(key).name .. ':' .. owner .. (':rwlock_timeout:%.0f'):format(index)
end

-- What a key's slot is computed from: what stands between the first `{` and the next
-- `}`, if that is anything, else all of it.
local function slot_part(name)
    local open = name:find('{', 1, true)
    local close = open and name:find('}', open + 1, true)
    if close and close > open + 1 then return name:sub(open + 1, close - 1) end
    return name
end

-- Whether the server is part of a cluster. It does not change while it runs. A script is
-- told so, for it would have to ask at each call.
local cluster
if not IS_LIBRARY then cluster = ARGV[1] == 'CLUSTER' end
local function in_cluster()
    if cluster == nil then
        local info = ask('INFO', 'cluster')
        cluster = info:find('cluster_enabled:1', 1, true) ~= nil
    end
    return cluster
end

-- Whether what is named after a key can be reached with it. Names with a brace that
-- is no hash tag have theirs in another slot.
local function is_near(name, key)
    return stem_of(key).is_whole or slot_part(name) == slot_part(key) or not in_cluster()
end

-- Ends the call if a key beside the lock that is not here may be on another node: then
-- the server refuses to look at two of the slot of which one is not here.
local function needs_settled(key)
    local probe = prefixed('rlock1_probe', key)
    if in_cluster() and is_near(probe, key) then ask('EXISTS', probe, lease_key(key, probe, 1)) end
end

-- Behind the locks a client may declare what belongs to them, for some servers let a script
-- touch no other keys. Of such a name, what it is named after.
local function declared_for(name)
    return name:match('^redisson_lock_token:(.*)$') or name:match('^rlock1_queue:(.*)$') or
        name:match('^rlock1_places:(.*)$')
end

-- The locks among the keys of a call.
local function locks_among(keys)
    if #keys < 2 then return keys end
    local locks, names = {}, {}
    for _, key in ipairs(keys) do
        local of = declared_for(key)
        if not of or not names[of] then
            table.insert(locks, key)
            names[stem_of(key).name] = true
        end
    end
    return locks
end

-- ARGUMENTS, read from left to right.

-- A decimal number without sign, blanks or leading zeros, as the server reads it.
-- Lua's own tonumber takes more: 0x10, 1e3, ' 5 '. The last one is remembered: most calls
-- come with the same lease.
local read_text, read_value
local function number(text, least)
    if text ~= read_text then
        if text ~= '0' and not text:find('^[1-9]%d*$') then return nil end
        read_text, read_value = text, tonumber(text)
    end
    local value = read_value
    if value >= least and value <= MOST_MS then return value end
end

-- A place in the queue of a lock: how long its name may be, and for how long it may be
-- kept without a try.
local LONGEST_PLACE, MOST_PLACE_MS = 100, 3600 * 1000

-- A number of permits, or a limit of them.
local function permits_in(text)
    local value = number(text, 1)
    return value and value <= MOST_PERMITS and value or nil
end

local Args = {}
Args.__index = Args

local function arguments(usage, list)
    return setmetatable({ usage = usage, list = list, at = 0 }, Args)
end

-- The next one, if there is any.
function Args:take()
    self.at = self.at + 1
    return self.list[self.at]
end

function Args:wrong_number()
    refuse('ERR wrong number of arguments; usage: ' .. self.usage)
end

-- The next one, which must be there.
function Args:next()
    return self:take() or self:wrong_number()
end

function Args:syntax(word)
    refuse('ERR syntax error at ' .. shown(word) ..
        ': each keyword once, none but these; usage: ' .. self.usage)
end

-- What stands behind a keyword.
function Args:needs(word, what)
    return self:take() or
        refuse('ERR syntax error: ' .. word .. ' needs ' .. what .. '; usage: ' .. self.usage)
end

-- A number of permits behind a keyword.
function Args:permits(word)
    local given = self:needs(word, 'a number')
    return permits_in(given) or refuse('ERR %s must be a whole number from 1 to %.0f, got %s',
        word, MOST_PERMITS, shown(given))
end

-- The same, if no keyword comes next.
function Args:permits_if_any(word, allowed)
    local following = self.list[self.at + 1]
    if following and not allowed[following:upper()] then return self:permits(word) end
end

-- The token behind FENCE.
function Args:fence(word)
    local given = self:needs(word, 'a token')
    return number(given, 1) or refuse(
        'ERR the token must be a whole number from 1 to %.0f, got %s', MOST_MS, shown(given))
end

-- The limit of permits that is to be in force.
function Args:limit()
    local given = self:next()
    return permits_in(given) or refuse('ERR the limit must be a whole number from 1 to %.0f, ' ..
        'got %s', MOST_PERMITS, shown(given))
end

-- The name of a place in the queue.
function Args:place_name(word)
    local name = self:needs(word, 'a name')
    if #name < 1 or #name > LONGEST_PLACE then
        refuse('ERR the name of a place must be 1 to %d bytes long, got %d', LONGEST_PLACE, #name)
    end
    return { name = name }
end

-- The same, and for how long it is kept, ms; 0: it is given up.
function Args:place(word)
    local place, given = self:place_name(word), self:needs(word, 'a number of ms')
    place.ms = number(given, 0)
    if not place.ms or place.ms > MOST_PLACE_MS then
        refuse('ERR a place can be kept for 0 to %.0f ms, got %s', MOST_PLACE_MS, shown(given))
    end
    return place
end

-- How many of something are to be listed at the most.
function Args:count(word)
    local given = self:next()
    return number(given, 1) or refuse('ERR %s must be a whole number from 1 to %.0f, got %s',
        word, MOST_MS, shown(given))
end

function Args:owner()
    local owner = self:next()
    if #owner < 1 or #owner > LONGEST_OWNER then
        refuse('ERR the owner must be 1 to %d bytes long, got %d', LONGEST_OWNER, #owner)
    end
    if owner == 'mode' or owner:sub(-6) == ':write' then
        refuse("ERR the owner must not be 'mode' or end in ':write', which have a meaning " ..
            'in the hash of a lock; got ' .. shown(owner))
    end
    return owner
end

function Args:lease()
    local given = self:next()
    return number(given, 1) or refuse(
        'ERR the lease must be a whole number of ms from 1 to %.0f, got %s', MOST_MS, shown(given))
end

-- What only the module can do. Never ignored: whoever asked for it counts on it.
local REFUSED = {
    QUEUE = 'ERR QUEUE needs the rlock module: a function cannot wait. Try again when a message ' ..
        'says that the lock is free, or its lease is over',
    NOTIFY = 'ERR NOTIFY notifies a connection of its hold, and a script, a function or a module ' ..
        'has none of its own: leave it out',
    WANTED = 'ERR WANTED notifies a connection that somebody waits for its hold, and a script, a ' ..
        'function or a module has none of its own: leave it out',
    BLOCK = 'ERR BLOCK needs the rlock module: a function cannot wait. Leave it out, and try ' ..
        'again when a message says that the lock is free, or its lease is over',
    WATCHDOG = 'ERR WATCHDOG binds a hold to a connection, and a script, a function or a ' ..
        'module has none of its own: leave it out and RENEW the lease',
    IFTOKEN = 'ERR IFTOKEN needs the rlock module: a function does not remember for sure which ' ..
        'hold has which token. Say IFHELD or IFOWNER, with a fresh owner for each acquisition',
}

-- Keywords in any order, each once, up to the end. `allowed` says what each of them
-- sets: {'mode', 'read'} for READ; and how the number behind it is read, if there is any:
-- {'mode', 'permits', 'limit', read} for LIMIT.
function Args:keywords(allowed)
    local found = {}
    for given in self.take, self do
        local word = given:upper()
        local sets = allowed[word]
        if not sets then self:syntax(given) end
        if REFUSED[word] then refuse(REFUSED[word]) end
        local name, value = sets[1], sets[2]
        if found[name] then self:syntax(given) end
        found[name] = value
        if sets[3] then found[sets[3]] = sets[4](self, word, allowed) end
    end
    return found
end

local READ, WRITE = { 'mode', 'read' }, { 'mode', 'write' }
local ONCE, ALL = { 'once', true }, { 'all', true }
local IFHELD = { 'if_held', true }
local LIMIT = { 'mode', 'permits', 'limit', Args.permits }
-- How many are wanted, how many are given back, or the mode alone.
local PERMITS_WANTED = { 'permits', nil, 'permits', Args.permits }
local PERMITS_BACK = { 'mode', 'permits', 'permits', Args.permits_if_any }
local PERMITS = { 'mode', 'permits' }
local FENCE = { 'fence', nil, 'fence', Args.fence }
local TOKEN = { 'fence', 'new' }
local COUNT = { 'count', nil, 'count', Args.count }
local PLACE = { 'place', nil, 'place', Args.place }
local PLACE_NAME = { 'place', nil, 'place', Args.place_name }
local NONE = {}

-- `*` means a connection to the module.
local function name_of(owner)
    if owner == '*' then
        refuse('ERR owner * means a connection, and a script, a function or a module has ' ..
            'none of its own: give an owner id')
    end
    return owner
end

local function one_key(args, keys)
    if #keys ~= 1 then args:wrong_number() end
    local key = keys[1]
    if key:find('^rlock1_') and declared_for(key) then
        refuse('ERR %s is a name of what belongs to a lock: use another name', shown(key))
    end
    return key
end

-- All keys, each once.
local function many_keys(keys)
    if #keys < 1 or #keys > MOST_KEYS then
        refuse("ERR numkeys must be a whole number from 1 to %d, got '%d'", MOST_KEYS, #keys)
    end
    local seen = {}
    for _, key in ipairs(keys) do
        if seen[key] then
            refuse('ERR the key %s is given twice; each must be given once', shown(key))
        end
        seen[key] = true
    end
    return keys
end

-- MEMORY: what a library knows beside the keyspace. Nothing depends on it but that a
-- nested hold gets the token of the first, and that a plain hold is not taken for a
-- dead reader. Of two generations the older goes when the younger is full.

local MOST_REMEMBERED, LONGEST_NAME = 10000, 2048
local young, old, remembered = {}, {}, 0

local function recall(key, what)
    local name = stem_of(key).memory .. what
    return young[name] or old[name]
end

local function forget(key, what)
    local name = stem_of(key).memory .. what
    if young[name] then
        young[name], remembered = nil, remembered - 1
    end
    old[name] = nil
end

local function remember(key, what, known)
    if not IS_LIBRARY or #key + #what > LONGEST_NAME then return forget(key, what) end
    local name = stem_of(key).memory .. what
    if not young[name] then
        if remembered >= MOST_REMEMBERED then
            young, old, remembered = {}, young, 0
        end
        remembered = remembered + 1
    end
    young[name], old[name] = known, nil
end

-- Of each owner's hold: { token, since, ends }. Of a key, under no owner's name, the
-- plain hold that the library gave there last: the same and its owner, or without token and
-- since where the token is another's.
local PLAIN = ''

local function remember_plain(key, owner, ends, token, since)
    remember(key, PLAIN, { owner = owner, ends = ends, token = token, since = since })
end

local function is_known_plain(key, owner)
    local known = recall(key, PLAIN)
    return known ~= nil and known.owner == owner
end

-- WHAT IS FOUND of a lock when a key is looked at:
--   kind    'free', 'plain', 'shared' (a read/write lock), 'permits', or 'foreign': no lock
--   why     of what is foreign: the error line
--   ends    when the key ends, ms since 1970
--   owner, holds   of a plain lock
--   mode    of a shared one: what its field `mode` says
--   reads   by owner: { holds, ends }, those whose lease is not over
--   writes  by owner: holds
--   plains  by owner: holds, of a plain lock that somebody made a read/write lock of
--           (Redisson's does not see plain ones): exclusive until the hash ends
--   dead    the owners whose fields are there, and whose lease keys are gone or whose
--           permits have run out
--   pool    of permits: { asked, limit, out }, what its field `mode` says without the dead
--   fields  how many owners' fields there are
--   permits by owner: { holds, ends, ends_text }: of those that were read
--   remains true: a hash that nobody holds any more lies where the lock is free

-- When a key ends; nil when it is not there. Redis before 7.0 gives only how much is
-- left.
local function ends_at(key)
    local at
    if redis.REDIS_VERSION_NUM then
        at = ask('PEXPIRETIME', key)
    else
        local now, left = ask('TIME'), ask('PTTL', key)
        at = left < 0 and left or left + now[1] * 1000 + math.floor(now[2] / 1000)
    end
    if at == -2 then return nil end
    return at == -1 and NEVER or at
end

-- A number of holds: a positive integer as the server writes it.
local function count(text)
    local most = '9223372036854775807'
    if not text:find('^[1-9]%d*$') or #text > #most or (#text == #most and text > most) then
        return nil
    end
    return tonumber(text)
end

-- A number as a reply can carry it.
local function whole(value)
    return math.min(value, 2 ^ 63 - 1024)
end

-- Whether a field of this name can stand for an owner: others have another meaning.
local function is_owner(name)
    return name ~= '' and name ~= 'mode' and name:sub(-6) ~= ':write'
end

local function foreign(lock, why)
    lock.kind, lock.why = 'foreign', why
    return lock
end

-- PERMITS, as they lie in the hash: `mode` = `permits <asked> <limit> <out>`, where `asked`
-- is the limit that requests say, `limit` the one in force, and no more than `out` are out;
-- and for each owner a field `owner` = `permits@deadline`, ms since 1970.

local function pool_of(mode)
    local numbers = { mode:match('^permits (%d+) (%d+) (%d+)$') }
    for at, given in ipairs(numbers) do
        numbers[at] = given == '0' and 0 or count(given)
        if not numbers[at] then return nil end
    end
    local asked, limit, out = unpack(numbers)
    local is_limit = function(n) return n and n >= 1 and n <= MOST_PERMITS end
    if is_limit(asked) and is_limit(limit) then
        return { asked = asked, limit = limit, out = out }
    end
end

local function permit_of(value)
    local permits, ends = value:match('^(%d+)@(%d+)$')
    local holds = permits and count(permits)
    if not holds or holds > MOST_PERMITS or (ends ~= '0' and not count(ends)) then return nil end
    return { holds = holds, ends = tonumber(ends), ends_text = ends }
end

-- A lock as nobody has looked at the fields of its owners yet.
local function unread(lock, pool)
    lock.permits, lock.dead = {}, {}
    lock.pool = { asked = pool.asked, limit = pool.limit, out = pool.out }
end

-- Takes in the field of an owner; false: it is no permit.
local function take_in(lock, owner, value, now)
    local permit = is_owner(owner) and permit_of(value)
    if not permit then return false end
    if permit.ends < now then
        table.insert(lock.dead, owner)
        lock.pool.out = math.max(lock.pool.out - permit.holds, 0)
    else
        lock.permits[owner] = permit
    end
    return true
end

-- Reads all owners' fields: then it is known how many permits are out.
local function read_permits(lock, pool, now)
    unread(lock, pool)
    local fields = ask('HGETALL', lock.key)
    for at = 1, #fields, 2 do
        if fields[at] ~= 'mode' and not take_in(lock, fields[at], fields[at + 1], now) then
            return foreign(lock, other_layout(lock.key))
        end
    end
    if lock.ends == NEVER then return foreign(lock, without_ttl(lock.key)) end
    lock.pool.out = 0
    for _, permit in pairs(lock.permits) do lock.pool.out = lock.pool.out + permit.holds end
end

-- A hash with permits. The owner's field alone is read, unless that leaves in doubt what
-- is to be decided; without an owner all are.
local function look_at_permits(lock, pool, now, owner, is_in_doubt)
    lock.kind, lock.was_out, lock.fields = 'permits', pool.out, ask('HLEN', lock.key) - 1
    unread(lock, pool)
    local value = owner and ask('HGET', lock.key, owner)
    if value and not take_in(lock, owner, value, now) then
        return foreign(lock, other_layout(lock.key))
    end
    local reads_all = not owner or lock.ends == NEVER or (is_in_doubt and is_in_doubt(lock))
    if reads_all then read_permits(lock, pool, now) end
    if lock.kind == 'permits' and lock.fields == #lock.dead then
        lock.kind, lock.remains = 'free', true
    end
    return lock
end

-- LOOKING at a key.

-- Whether this lease key is there and the lock's: a string with the lock's name, or
-- Redisson's 1.
local function is_lease_key(name, key)
    local size = ask('STRLEN', name)
    if size ~= #key and size ~= 1 then return false end
    local value = ask('GET', name)
    return value == key or value == '1'
end

-- Until when its lease keys keep a reader in; nil when all of them are gone. Of what
-- is in them only the length is looked at.
local function lease_of(key, owner, holds)
    local latest, is_missing
    -- Beyond this a count plus one is the same to Lua.
    holds = math.min(holds, MOST_MS)
    local function look_at(index)
        local name = lease_key(key, owner, index)
        local ends = ends_at(name)
        if not ends then
            is_missing = true
            return
        end
        local size = ask('STRLEN', name)
        if size == #key or size == 1 then latest = math.max(latest or 0, ends) end
    end
    for index = 1, math.min(holds, FROM_EITHER_END) do look_at(index) end
    for index = math.max(holds - FROM_EITHER_END, FROM_EITHER_END) + 1, holds do look_at(index) end
    if is_missing then needs_settled(key) end
    return latest
end

-- A field without lease keys, of a plain hold that the library gave and that has not
-- ended by its own lease.
local function is_plain(key, owner, now)
    return is_known_plain(key, owner) and recall(key, PLAIN).ends >= now
end

-- Nobody holds the read/write lock.
local function is_empty(lock)
    return next(lock.reads) == nil and next(lock.writes) == nil and next(lock.plains) == nil
end

-- A hash with a mode: every other field must count an owner's holds.
local function look_at_shared(lock, fields, now)
    lock.kind, lock.reads, lock.writes, lock.plains, lock.dead = 'shared', {}, {}, {}, {}
    for at = 1, #fields, 2 do
        local field, holds = fields[at], count(fields[at + 1])
        if field ~= 'mode' then
            local is_writer = field:sub(-6) == ':write'
            local owner = is_writer and field:sub(1, -7) or field
            if not holds or not is_owner(owner) then
                return foreign(lock, other_layout(lock.key))
            end
            if is_writer then
                lock.writes[owner] = holds
            else
                local ends = lease_of(lock.key, owner, holds)
                if ends then
                    lock.reads[owner] = { holds = holds, ends = ends }
                    -- Who reads has no plain hold any more.
                    if is_known_plain(lock.key, owner) then forget(lock.key, PLAIN) end
                elseif is_plain(lock.key, owner, now) then
                    lock.plains[owner] = holds
                else
                    table.insert(lock.dead, owner)
                end
            end
        end
    end
    if lock.ends == NEVER then return foreign(lock, without_ttl(lock.key)) end
    if is_empty(lock) then lock.kind, lock.remains = 'free', true end
    return lock
end

local function find(key, now, owner, is_in_doubt)
    local lock = { key = key, kind = 'free' }
    local kind = ask('TYPE', key).ok
    if kind == 'none' then return lock end
    if kind ~= 'hash' then return foreign(lock, WRONG_TYPE) end
    lock.ends = ends_at(key)
    if ask('HLEN', key) > 1 then
        -- Asked first, for the hash may be somebody's, and large.
        lock.mode = ask('HGET', key, 'mode')
        local pool = lock.mode and pool_of(lock.mode)
        if pool then return look_at_permits(lock, pool, now, owner, is_in_doubt) end
        if lock.mode ~= 'read' and lock.mode ~= 'write' then
            return foreign(lock, other_layout(key))
        end
    end
    local fields = ask('HGETALL', key)
    if #fields == 0 then return lock end
    if fields[1] == 'mode' and #fields == 2 and pool_of(fields[2]) and lock.ends ~= NEVER then
        -- What is left of permits that somebody has taken away by hand.
        lock.remains = true
        return lock
    end
    if #fields > 2 then return look_at_shared(lock, fields, now) end
    lock.kind, lock.owner, lock.holds = 'plain', fields[1], count(fields[2])
    if not lock.holds then return foreign(lock, other_layout(key)) end
    -- The module may know it for a lock that somebody has PERSISTed; nobody here can.
    if lock.ends == NEVER then return foreign(lock, without_ttl(key)) end
    return lock
end

-- The key as this owner sees it; without one as nobody does. `is_in_doubt(lock)`: whether
-- the fields of all who hold permits are to be read.
local function look(key, now, owner, is_in_doubt)
    local lock = find(key, now, owner, is_in_doubt)
    -- The plain hold that was known is over.
    if lock.kind ~= 'shared' and not is_known_plain(key, lock.owner) then forget(key, PLAIN) end
    return lock
end

-- How many holds or permits the owner has in a mode; nil: none.
local function holds_of(lock, owner, mode)
    if lock.kind == 'permits' then
        local its = mode == 'permits' and lock.permits[owner]
        return its and its.holds or nil
    end
    if lock.kind == 'plain' then
        return mode == 'exclusive' and lock.owner == owner and lock.holds or nil
    end
    if lock.kind ~= 'shared' then return nil end
    if mode == 'exclusive' then return lock.plains[owner] end
    if mode == 'write' then return lock.writes[owner] end
    if mode == 'permits' then return nil end
    return lock.reads[owner] and lock.reads[owner].holds
end

-- A mode in which the owner holds the lock; nil: in none.
local MODES = { 'exclusive', 'write', 'read', 'permits' }
local function mode_of(lock, owner)
    for _, mode in ipairs(MODES) do
        if holds_of(lock, owner, mode) then return mode end
    end
end

-- When the lease of an owner ends that holds the lock. It has one, whatever its modes.
local function lease_end(lock, owner)
    if lock.kind == 'permits' then return lock.permits[owner] and lock.permits[owner].ends end
    local reader = lock.kind == 'shared' and not lock.writes[owner] and lock.reads[owner]
    return reader and reader.ends or lock.ends
end

-- What is known of the owner's hold, if it is the very one that the library gave: who
-- else had a hand in it changed its lease.
local function known_of(lock, owner)
    local is_plain = holds_of(lock, owner, 'exclusive')
    local known = recall(lock.key, is_plain and PLAIN or owner)
    if not known or is_plain and (known.owner ~= owner or not known.token) then return nil end
    return known.ends == lease_end(lock, owner) and known or nil
end

-- The owner's hold, of which this is known, ends at this moment from now on.
local function ends_now(lock, owner, mode, known, at)
    if mode == 'exclusive' then
        return remember_plain(lock.key, owner, at, known and known.token, known and known.since)
    end
    if not known then return forget(lock.key, owner) end
    known.ends = at
    remember(lock.key, owner, known)
end

-- Whether anybody but the owner is in this table of holders.
local function has_other(holders, owner)
    local first = next(holders)
    return first ~= nil and (first ~= owner or next(holders, first) ~= nil)
end

-- WORK: what a call has decided to write and to announce.

local Work = {}
Work.__index = Work

local function begin()
    local time = ask('TIME')
    local us = time[1] * 1000000 + time[2]
    local work = { now_us = us, now = math.floor(us / 1000) }
    work.writes, work.messages, work.freed, work.left = {}, {}, {}, {}
    return setmetatable(work, Work)
end

local function text(number) return string.format('%.0f', number) end

function Work:write(...) table.insert(self.writes, { ... }) end

function Work:expire(key, at) self:write('PEXPIREAT', key, text(at)) end

-- The owner has `by` holds more, or fewer, in a field; a first one begins it.
function Work:count(key, field, had, by)
    if had == 0 then
        self:write('HSET', key, field, text(by))
    else
        self:write('HINCRBY', key, field, text(by))
    end
end

-- The lease keys of a reader's holds from one number to another, as far as they are
-- the lock's.
function Work:each_lease(lock, owner, first, last, act)
    for index = first, math.min(last, MOST_READS) do
        local name = lease_key(lock.key, owner, index)
        if is_lease_key(name, lock.key) then act(name) end
    end
end

function Work:end_leases(lock, owner, first, last)
    self:each_lease(lock, owner, first, last, function(name) self:write('DEL', name) end)
end

function Work:move_leases(lock, owner, holds, at)
    self:each_lease(lock, owner, 1, holds, function(name) self:expire(name, at) end)
end

function Work:publish(key, channel, message)
    if not is_near(channel, key) then return end
    local sharded = in_cluster() and redis.REDIS_VERSION_NUM ~= nil
    table.insert(self.messages, { sharded and 'SPUBLISH' or 'PUBLISH', channel, message })
end

-- A plain lock is left free: wakes one waiter of each of Redisson's clients, the head of the
-- queue, and the first in the queue of Redisson's fair lock, each on a channel of its own.
function Work:wake_plain(key)
    local channel = prefixed('redisson_lock__channel', key)
    self:publish(key, channel, '0')
    self:wake_place(key)
    local queue = prefixed('redisson_lock_queue', key)
    local places = prefixed('redisson_lock_timeout', key)
    if not is_near(queue, key) then return end
    local reply = redis.pcall('LINDEX', queue, 0)
    if is_elsewhere(reply) then return end
    local first = checked(reply)
    for at = 1, 64 do
        if type(first) ~= 'string' then return end
        -- Whose place has run out is not there any more.
        local until_ms = ask('ZSCORE', places, first)
        if type(until_ms) ~= 'string' or tonumber(until_ms) > self.now then break end
        first = ask('LINDEX', queue, at)
    end
    if type(first) == 'string' then self:publish(key, channel .. ':' .. first, '0') end
end

-- A read/write lock is left free, or readers may enter: '1' wakes all who wait, and
-- '0' one of each client.
function Work:wake_shared(key, message)
    self:publish(key, prefixed('redisson_rwlock', key), message)
    self:wake_place(key)
end

-- A lock was found free whose last holders have died: that is announced if nobody takes it now.
function Work:found_free(lock)
    local messages = self.messages
    self.messages = {}
    if lock.pool then self:wake_plain(lock.key) else self:wake_shared(lock.key, '0') end
    self.freed[lock.key], self.messages = self.messages, messages
end

-- How many permits there are, and how many are out; with `...` an owner's too, at once.
function Work:write_pool(lock, ...)
    local pool = lock.pool
    local out = text(whole(pool.out))
    self:write('HSET', lock.key, 'mode', 'permits ' .. text(pool.asked) .. ' ' ..
        text(pool.limit) .. ' ' .. out, ...)
end

-- The fields of owners that died go, and with the last of them the hash.
function Work:bury(lock)
    if lock.remains then
        self:write('DEL', lock.key)
        self:found_free(lock)
    elseif lock.kind == 'permits' then
        if lock.pool.out ~= lock.was_out then self:write_pool(lock) end
        for _, owner in ipairs(lock.dead) do self:write('HDEL', lock.key, owner) end
    elseif lock.kind == 'shared' then
        for _, owner in ipairs(lock.dead) do self:write('HDEL', lock.key, owner) end
    end
end

-- Looks at a key for a call that may write.
function Work:look(key, owner, is_in_doubt)
    local lock = look(key, self.now, owner, is_in_doubt)
    self:bury(lock)
    return lock
end

-- Redis before 7.0 cannot be asked what a user may do, and a script that is refused at its second
-- write has done the first. So each write is tried by words that change nothing, mostly for
-- they are wrong; no field and no place has the name ''.
local IN_VAIN = {
    HSET = { 'mode', 'read', 'mode' },
    HINCRBY = { 'mode', 'no number' },
    HDEL = { '' },
    PEXPIREAT = { 'no number' },
    INCRBY = { 'no number' },
    SET = { '', 'no option' },
    ZADD = { 'no number', '' },
    ZREM = { '' },
}

local function in_vain(command)
    local name, key = command[1], command[2]
    -- A key that is to go was read before: there the command is in question.
    if name == 'DEL' then return { 'DEL', prefixed('rlock1_probe', key) } end
    return { name, key, unpack(IN_VAIN[name]) }
end

local function is_refused(command)
    local reply = redis.pcall(unpack(command))
    local line = type(reply) == 'table' and reply.err
    return line and line:find('The user executing the script', 1, true) ~= nil
end

local function no_right(command)
    local line = 'NOPERM this user may not run %s on %s, which rlock has to; nothing was changed'
    return redis.error_reply(line:format(command[1], shown(command[2])))
end

-- A library's functions have flags that say whether they may run when memory is full.
-- A script is stopped at a write that takes memory if it is the first, so it begins
-- with one that does nothing, and takes memory or does not. The error reply, if any.
local function begin_script(key, takes_memory)
    local probe = prefixed('rlock1_probe', key)
    if not is_near(probe, key) then return end
    local reply
    if takes_memory then
        reply = redis.pcall('SETRANGE', probe, 0, '')
    else
        reply = redis.pcall('DEL', probe)
    end
    if type(reply) == 'table' then return redis.error_reply(said(reply)) end
end

-- The first write or message that this user has no right to, as an error reply.
function Work:lacks_right()
    for _, list in ipairs({ self.writes, self.messages }) do
        for _, command in ipairs(list) do
            if not redis.acl_check_cmd(unpack(command)) then return no_right(command) end
        end
    end
end

-- The same before 7.0. Messages are sent by that: nobody can act on one before the writes are done.
function Work:lacks_right_by_trying()
    local tried = {}
    for _, command in ipairs(self.writes) do
        local what = command[1] .. ' ' .. command[2]
        if not tried[what] and is_refused(in_vain(command)) then return no_right(command) end
        tried[what] = true
    end
    for _, message in ipairs(self.messages) do
        if is_refused(message) then return no_right(message) end
    end
    self.messages = {}
end

-- Carries out what was noted, all of it or nothing; the error reply if it must not be.
function Work:carry_out(key, takes_memory)
    for _, messages in pairs(self.freed) do
        for _, message in ipairs(messages) do table.insert(self.messages, message) end
    end
    local can_ask = redis.acl_check_cmd ~= nil
    local refused = can_ask and self:lacks_right()
    if not refused and not IS_LIBRARY and self.writes[1] then
        refused = begin_script(key, takes_memory)
    end
    -- Only now: what comes behind a first write may take memory that there is not.
    if not refused and not can_ask then refused = self:lacks_right_by_trying() end
    if refused then return refused end
    for _, list in ipairs({ self.writes, self.messages }) do
        for _, command in ipairs(list) do redis.call(unpack(command)) end
    end
end

-- THE QUEUE of those who wait long enough to want a turn: one zset has the places in the
-- order in which they were taken, and another until when each of them is kept, ms since
-- 1970. A place is alive as long as its owner goes on trying.

-- The names of both; nil: they would lie in another slot.
local function queue_of(key)
    local queue = prefixed('rlock1_queue', key)
    if is_near(queue, key) then return queue, prefixed('rlock1_places', key) end
end

-- While a slot moves, a queue that may be on the other node is taken for none.
local function ask_queue(...)
    local reply = redis.pcall(...)
    return not is_elsewhere(reply) and checked(reply) or nil
end

-- So many whose time is over go in one call.
local MOST_GO = 64

-- The place that is to have the lock next, without the one of this name; nil: there is none.
-- Those whose time is over go. Whether any went.
function Work:head(key, without)
    local queue, places = queue_of(key)
    local first = queue and (ask_queue('ZRANGE', queue, 0, 0) or {})[1]
    -- What is no queue is none.
    if not first or not ask_queue('ZCARD', places) then return nil, false end
    local gone = false
    for at = 1, MOST_GO do
        if first ~= without then
            local ends = ask_queue('ZSCORE', places, first)
            if ends and tonumber(ends) > self.now then return first, gone end
            self:leave(key, first)
            gone = true
        end
        first = (ask_queue('ZRANGE', queue, at, at) or {})[1]
        if not first then break end
    end
    return nil, gone
end

-- A place is given up.
function Work:leave(key, name)
    local queue, places = queue_of(key)
    local left = self.left[key] or {}
    self.left[key] = left
    if left[name] then return end
    left[name] = true
    self:write('ZREM', queue, name)
    self:write('ZREM', places, name)
end

-- How many places are taken.
function Work:places(key)
    local queue = queue_of(key)
    local taken, left = queue and ask_queue('ZCARD', queue) or 0, 0
    for _ in pairs(self.left[key] or {}) do left = left + 1 end
    return math.max(taken - left, 0)
end

-- A place is taken, or kept for longer; how many are before it, and -1 where none can be had.
function Work:stay(key, place)
    local queue, places = queue_of(key)
    local waiting = queue and ask_queue('ZCARD', queue)
    if not waiting or not ask_queue('ZCARD', places) then return -1 end
    local ends = self.now + place.ms
    local before = ask_queue('ZRANK', queue, place.name)
    if not before then
        self:write('ZADD', queue, text(self.now_us), place.name)
        before = waiting
    end
    self:write('ZADD', places, text(ends), place.name)
    for _, name in ipairs({ queue, places }) do
        local now_ends = ends_at(name)
        if not now_ends or now_ends < ends then self:expire(name, ends) end
    end
    -- Those who go in this very call were all before it.
    for _ in pairs(self.left[key] or {}) do before = before - 1 end
    return math.max(before, 0)
end

-- The same of one that may not be there. Whether it was; the next one is told when it was
-- the head.
function Work:give_up(key, name)
    local queue, places = queue_of(key)
    local has_it = queue and ask_queue('ZRANK', queue, name) and ask_queue('ZCARD', places)
    if not has_it then return false end
    local is_head = self:head(key) == name
    self:leave(key, name)
    if is_head then self:wake_place(key, name) end
    return true
end

-- Tells the head of the queue that it should try, on a channel of its own: nobody else need.
function Work:wake_place(key, without)
    local first = self:head(key, without)
    if first then
        self:publish(key, prefixed('redisson_lock__channel', key) .. ':' .. first, '0')
    end
end

-- TOKENS: each greater than all before it, and not less than the microseconds since
-- 1970, so that they keep rising across a restart as far as the clock does. Where a
-- counter is kept beside the lock, also above that, which lifts the tokens of no other
-- lock. A script has no memory: there the counter is always kept, for some weeks.

-- The last by the clock.
local last = 0

-- What is ahead of the clock is remembered, for the counter that lifted it may be lost;
-- under a name that no owner has.
local AHEAD = 'mode'
local some_are_ahead = false

local function given_before(key)
    local known = recall(key, AHEAD)
    return known and known.token or 0
end

local function given(key, token)
    if token <= last then return end
    -- Nothing is above the greatest: once its counter is gone the lock begins anew.
    if token >= MOST_MS then return forget(key, AHEAD) end
    some_are_ahead = true
    remember(key, AHEAD, { token = math.max(token, given_before(key)) })
end

-- Nothing is above the greatest token.
local function needs_greater(key, token)
    if token < MOST_MS then return end
    refuse(WRONG_TYPE .. ': redisson_lock_token:... of %s, its fencing counter, has reached ' ..
        '%.0f, and no token is greater; use another name, or DEL it and what storage ' ..
        'remembers', shown(key), MOST_MS)
end

-- The name of a lock's counter, and what it says; nil: it has none. `made`: it gets one.
local function counter_of(key, made)
    local name = prefixed('redisson_lock_token', key)
    if not is_near(name, key) then return nil end
    local value = ask('GET', name)
    if value == false then
        if IS_LIBRARY and not made then return nil end
        needs_settled(key)
        return name, 0
    end
    -- What INCR would take: an integer of 64 bits.
    local is_number = value and (value == '0' or value:find('^%-?[1-9]%d*$'))
    local digits = is_number and value:gsub('%-', '')
    local last_one = is_number and '922337203685477580' .. (digits == value and '7' or '8')
    local fits = is_number and (#digits < 19 or #digits == 19 and digits <= last_one)
    local counted = fits and tonumber(value)
    if not counted then
        refuse(WRONG_TYPE .. ': redisson_lock_token:... of ' .. shown(key) .. ', its fencing ' ..
            'counter, is no integer that can be raised; use another name, or DEL it')
    end
    needs_greater(key, counted)
    return name, counted
end

-- How long a counter lives that was made by being raised, after it was last raised.
local KEPT_MS = 30 * 24 * 3600 * 1000

-- A counter is raised from what it says. Its TTL is moved on, and one that is made now gets
-- one. One that was there without a TTL is to stay.
local function write_counter(work, name, counted, token)
    local left = ask('PTTL', name)
    work:write('INCRBY', name, text(token - counted))
    if left ~= -1 then work:write('PEXPIREAT', name, text(work.now + math.max(left, KEPT_MS))) end
end

-- The token of a hold of these keys that begins now.
local function new_token(work, keys)
    local by_clock, counters = math.max(last + 1, work.now_us), {}
    local token = by_clock
    for _, key in ipairs(keys) do
        local name, counted = counter_of(key)
        if name then
            counters[name] = counted
            token = math.max(token, counted + 1)
        end
        token = math.max(token, given_before(key) + 1)
    end
    if token > MOST_MS then
        refuse('ERR this server\'s clock is beyond the year 2255, and no token is greater than ' ..
            '%.0f: set the clock', MOST_MS)
    end
    if token == by_clock then last = token end
    for _, key in ipairs(keys) do given(key, token) end
    for name, counted in pairs(counters) do
        if IS_LIBRARY then
            -- It is raised, which leaves it its TTL.
            work:write('INCRBY', name, text(token - counted))
        else
            write_counter(work, name, counted, token)
        end
    end
    return token
end

-- How far ahead of the clock a token may be that a client brings: a day, us.
local AHEAD_US = 24 * 3600 * 10 ^ 6

-- The counter of a lock is at least what a client brings from now on, and what the owner got
-- last for it; what it is.
local function raise(work, key, brought, newest)
    local name, counted = counter_of(key, true)
    if not name then
        refuse('ERR FENCE needs the fencing counter of ' .. shown(key) .. ', which would lie in ' ..
            'another slot of the cluster: use a name whose hash tag is whole, or one without braces')
    end
    local had = math.max(counted, newest, given_before(key))
    if brought > math.max(had, last, work.now_us + AHEAD_US) then
        refuse('ERR the token %.0f is greater than all that this server has given for this lock, ' ..
            'and more than a day ahead of its clock', brought)
    end
    local token = math.max(counted, newest, brought)
    given(key, token)
    write_counter(work, name, counted, token)
    return token
end

-- The lease of an owner that holds the lock ends at this moment, in every mode.
local function set_lease(work, lock, owner, at)
    local is_plain = holds_of(lock, owner, 'exclusive')
    ends_now(lock, owner, is_plain and 'exclusive', known_of(lock, owner), at)
    if is_plain then return work:expire(lock.key, at) end
    if lock.kind == 'permits' then
        work:write('HSET', lock.key, owner, text(lock.permits[owner].holds) .. '@' .. text(at))
        -- The key stays for the owner that stays longest.
        if at > lock.ends then work:expire(lock.key, at) end
        return
    end
    local reader, ends = lock.reads[owner], at
    if reader then
        work:move_leases(lock, owner, reader.holds, at)
        reader.ends = at
    end
    if not lock.writes[owner] then
        -- The hash stays for the reader that stays longest.
        for _, other in pairs(lock.reads) do ends = math.max(ends, other.ends) end
        if ends == NEVER then ends = math.max(lock.ends, at) end
    end
    if ends ~= lock.ends then work:expire(lock.key, ends) end
end

-- PERMITS: so many of a lock are wanted, given, and given back.

-- How much of the lock a request wants; nil: it wants no permits.
local function share_of(options)
    local permits = options.permits or 1
    if not options.limit then
        if options.permits then
            refuse('ERR PERMITS needs LIMIT n: how many permits of this lock there are')
        end
        return nil
    end
    if permits > options.limit then
        refuse('ERR PERMITS must be at most LIMIT, %.0f, got %.0f', options.limit, permits)
    end
    return { permits = permits, limit = options.limit }
end

-- Whether all who hold permits are to be read: others have them all, as far as `out` says,
-- which counts those who have run out; or the limit is not the one that is asked for, be it
-- in `mode` or in force, which lasts until nobody holds any.
local function is_in_doubt(lock, owner, once, share)
    local pool, has_some = lock.pool, lock.permits[owner] ~= nil
    if not share then return not has_some end
    if pool.asked ~= share.limit then return true end
    if once and has_some then return false end
    return pool.limit ~= pool.asked or share.permits > pool.limit - pool.out
end

-- The same for one who wants no permits.
local function is_held_by_others(owner)
    return function(lock) return is_in_doubt(lock, owner) end
end

-- In what way an owner can have permits of a lock that is held by some.
local function way_to_permits(lock, owner, once, share)
    local key, pool, its = shown(lock.key), lock.pool, lock.permits[owner]
    if pool.asked ~= share.limit then
        refuse('WRONGLIMIT %s is held with limit %.0f: ask with that one, or use another name',
            key, pool.asked)
    end
    if once and its then
        if its.holds == share.permits then return 'same' end
        refuse('HELD owner %s already holds another number of permits of %s, %.0f: RELEASE ' ..
            'them first, or leave ONCE away', shown(owner), key, its.holds)
    end
    if share.permits > pool.limit then
        refuse('WRONGLIMIT %s has a limit of %.0f for now: ask for no more permits', key,
            pool.limit)
    end
    return share.permits <= pool.limit - pool.out and 'join' or nil
end

-- The owner has so many permits more; when its lease ends.
local function give_permits(work, lock, owner, upto, how, share)
    local its = { holds = 0, ends = upto, ends_text = text(upto) }
    if how == 'first' then
        lock.pool = { asked = share.limit, limit = share.limit, out = 0 }
    elseif lock.permits[owner] then
        its = lock.permits[owner]
        -- Never shorter than it was.
        if its.ends < upto then its.ends, its.ends_text = upto, text(upto) end
    end
    lock.pool.out = lock.pool.out + share.permits
    work:write_pool(lock, owner, text(its.holds + share.permits) .. '@' .. its.ends_text)
    if how == 'first' or its.ends > lock.ends then work:expire(lock.key, its.ends) end
    return its.ends
end

local function refuse_too_few(lock, owner)
    refuse('NOTHELD owner %s does not hold so many permits of %s, but %.0f: nothing was given ' ..
        'back', shown(owner), shown(lock.key), lock.permits[owner].holds)
end

-- An owner gives back so many; the hash goes with the last field.
local function give_back(work, lock, owner, by)
    local key, its = lock.key, lock.permits[owner]
    local left = its.holds - by
    lock.pool.out = math.max(lock.pool.out - by, 0)
    if left > 0 then
        work:write_pool(lock, owner, text(left) .. '@' .. its.ends_text)
        return work:wake_place(key)
    end
    forget(key, owner)
    if lock.fields == #lock.dead + 1 then
        work:write('DEL', key)
        return work:wake_plain(key)
    end
    work:write_pool(lock)
    work:write('HDEL', key, owner)
    work:wake_place(key)
end

-- ACQUIRE: take a free lock, join others, nest, or be refused.

-- In what way an owner can have the lock as it is: 'first' (it is free), 'join' (others
-- read, so does it; or there are permits left), 'nest' (it has it in this mode), 'same' (it
-- has it, and ONCE adds no hold), 'under' (it writes, and reads too), 'upgrade' (it alone
-- reads, and writes from now on). nil: not now.
local function way(lock, owner, mode, once, share)
    if lock.kind == 'foreign' then refuse(lock.why) end
    local has = mode_of(lock, owner)
    if has and KIND[has] ~= KIND[mode] then refuse_mode(lock.key, owner, mode, has) end
    if lock.kind == 'free' then return 'first' end
    if lock.kind == 'permits' and mode == 'permits' then
        return way_to_permits(lock, owner, once, share)
    end
    if lock.kind == 'permits' or mode == 'permits' then return nil end
    if holds_of(lock, owner, mode) then return once and 'same' or 'nest' end
    if lock.kind == 'plain' or mode == 'exclusive' then return nil end
    if mode == 'read' and lock.writes[owner] then return 'under' end
    if next(lock.plains) ~= nil then return nil end
    if mode == 'read' then return next(lock.writes) == nil and 'join' or nil end
    if has_other(lock.reads, owner) or next(lock.writes) ~= nil then return nil end
    return 'upgrade'
end

-- What is known of a hold under way that goes on; nil: it gets a token anew.
local function under_way(lock, owner, how)
    if how == 'nest' or how == 'same' or how == 'under' then return known_of(lock, owner) end
end

-- Refuses a hold that there is no room for: the count is full, or the lease key that
-- a reader needs is something else's.
local function needs_room(lock, owner, mode, how)
    if how == 'same' then return end
    local holds = (holds_of(lock, owner, mode) or 0) + 1
    local is_full = holds > 2 ^ 63 - 1024 or (mode == 'read' and holds > MOST_READS)
    local name = mode == 'read' and not is_full and lease_key(lock.key, owner, holds)
    local is_taken = name and ask('EXISTS', name) == 1 and not is_lease_key(name, lock.key)
    if not is_full and not is_taken then return end
    -- The error of a counter that gives no token comes first.
    if not under_way(lock, owner, how) then counter_of(lock.key) end
    if is_full then refuse_deeper(lock.key, owner) end
    refuse(WRONG_TYPE .. ': the lease key that owner %s needs to read %s belongs to ' ..
        'something else; use another name or owner', shown(owner), shown(lock.key))
end

-- A plain hold; when its lease ends.
local function give_plain(work, lock, owner, upto, how)
    local key = lock.key
    if how == 'first' then
        work:write('HSET', key, owner, '1')
        work:expire(key, upto)
        return upto
    end
    work:write('HINCRBY', key, owner, '1')
    -- Never shorter than it was.
    if upto > lock.ends then work:expire(key, upto) end
    return math.max(lock.ends, upto)
end

-- A hold for READ or WRITE; when its lease ends.
local function give_shared(work, lock, owner, upto, mode, how)
    local key = lock.key
    local begins = how == 'first' or how == 'join'
    local ends = begins and upto or math.max(lease_end(lock, owner), upto)
    local reads = holds_of(lock, owner, 'read') or 0
    local had = holds_of(lock, owner, mode) or 0
    if how == 'first' or how == 'upgrade' then
        work:write('HSET', key, 'mode', mode)
    elseif how == 'join' and lock.mode == 'write' then
        -- The writer is gone without a word.
        work:write('HSET', key, 'mode', 'read')
    end
    work:count(key, mode == 'write' and owner .. ':write' or owner, had, 1)
    -- The lease keys of a writer that reads too may have another end than the hash.
    local reader = lock.reads and lock.reads[owner]
    if reader and reader.ends ~= ends and ends ~= NEVER then
        work:move_leases(lock, owner, reads, ends)
    end
    if mode == 'read' then
        needs_settled(key)
        local name = lease_key(key, owner, had + 1)
        work:write('SET', name, key)
        if ends ~= NEVER then work:expire(name, ends) end
    end
    if how == 'first' then
        work:expire(key, ends)
        return ends
    end
    local hash_ends = math.max(lock.ends, ends)
    if ends == NEVER then
        hash_ends = math.max(lock.ends, upto)
    elseif how == 'upgrade' then
        -- Its reader is alone now: the lock ends with it.
        hash_ends = ends
    end
    if hash_ends ~= lock.ends then work:expire(key, hash_ends) end
    return (mode == 'write' or lock.writes[owner]) and hash_ends or ends
end

-- The lock is the owner's from now on, or once more: its token. `fresh()` makes one.
local function give(work, lock, owner, lease, mode, how, fresh, share)
    local known = under_way(lock, owner, how)
    if not known then
        -- Permits more have a token of their own, but the owner has held the lock before.
        local before = lock.kind == 'permits' and known_of(lock, owner)
        known = { token = fresh(), since = before and before.since or work.now_us }
    end
    work.freed[lock.key] = nil
    local upto, ends = work.now + lease, nil
    if how == 'same' then
        ends = lease_end(lock, owner)
        if ends < upto then
            ends = upto
            set_lease(work, lock, owner, ends)
        end
    elseif mode == 'exclusive' then
        ends = give_plain(work, lock, owner, upto, how)
    elseif mode == 'permits' then
        ends = give_permits(work, lock, owner, upto, how, share)
    else
        ends = give_shared(work, lock, owner, upto, mode, how)
    end
    ends_now(lock, owner, mode, known, ends)
    return known.token
end

-- ms until the lock can be another's without a message: until what is in its way has ended;
-- nil: nothing is known.
local function left_of(work, lock, owner)
    local ends
    if lock.kind == 'plain' then
        ends = lock.ends
    elseif lock.kind == 'permits' then
        -- Some come back with the first of them.
        ends = NEVER
        for other, its in pairs(lock.permits) do
            if other ~= owner then ends = math.min(ends, its.ends) end
        end
    elseif lock.kind == 'shared' and (next(lock.writes) or next(lock.plains)) then
        ends = lock.ends
    elseif lock.kind == 'shared' then
        ends = 0
        for other, reader in pairs(lock.reads) do
            if other ~= owner then ends = math.max(ends, reader.ends) end
        end
    end
    if ends and ends < NEVER then return math.max(ends - work.now, 0) + 1 end
end

-- The reply to who cannot have the lock now.
local function refused(work, lock, owner, place)
    if not place then return false end
    if place.ms > 0 then return { left_of(work, lock, owner) or -1, work:stay(lock.key, place) } end
    work:give_up(lock.key, place.name)
    return { left_of(work, lock, owner) or -1, -1 - work:places(lock.key) }
end

-- The queue of a lock that can be had: whether it is another's turn. Who gets it leaves the
-- queue, and the next one may enter too where the lock can be shared.
local function is_others_turn(work, lock, owner, how, mode, place)
    if how ~= 'first' and how ~= 'join' then return false end
    if mode_of(lock, owner) then return false end
    local first, some_went = work:head(lock.key)
    if not first then return false end
    if place and place.name == first then
        work:leave(lock.key, first)
        if mode == 'read' or mode == 'permits' then work:wake_place(lock.key, first) end
        return false
    end
    -- The one before it may have died when the message came.
    if some_went then work:wake_place(lock.key) end
    return true
end

local function acquire(work, keys, list)
    local args = arguments(
        'RLOCK.ACQUIRE key owner lease [READ|WRITE|LIMIT n] [PERMITS k] ' ..
        '[BLOCK ms|QUEUE ms] [NOTIFY channel tag] [WANTED] [WATCHDOG] [ONCE]', list)
    local key, owner, lease = one_key(args, keys), args:owner(), args:lease()
    local options = args:keywords({
        READ = READ, WRITE = WRITE, LIMIT = LIMIT, PERMITS = PERMITS_WANTED, ONCE = ONCE,
        BLOCK = NONE, QUEUE = NONE, NOTIFY = NONE, WANTED = NONE, WATCHDOG = NONE,
        PLACE = PLACE,
    })
    local mode = options.mode or 'exclusive'
    name_of(owner)
    if mode == 'read' and not is_near(lease_key(key, owner, 1), key) then
        refuse('ERR in a cluster the lease key of a reader would lie in another slot than ' ..
            shown(key) .. ': use a name without braces, or with a whole hash tag')
    end
    local share = share_of(options)
    local lock = work:look(key, owner, function(lock)
        return is_in_doubt(lock, owner, options.once, share)
    end)
    local how = way(lock, owner, mode, options.once, share)
    if not how then return refused(work, lock, owner, options.place) end
    needs_room(lock, owner, mode, how)
    if is_others_turn(work, lock, owner, how, mode, options.place) then
        return refused(work, lock, owner, options.place)
    end
    return give(work, lock, owner, lease, mode, how, function()
        return new_token(work, { key })
    end, share)
end

-- RELEASE, RENEW, FORCE: end a hold, move its lease, end everybody's.

-- Refuses an owner that does not hold the lock in this mode; how many holds it has.
local function needs_hold(lock, owner, mode)
    if lock.kind == 'foreign' then refuse(lock.why) end
    local holds = holds_of(lock, owner, mode)
    return holds or refuse_not_held(lock.key, owner, mode, mode_of(lock, owner))
end

local function release_plain(work, lock, owner, left)
    if left > 0 then
        work:count(lock.key, owner, lock.holds, left - lock.holds)
    else
        forget(lock.key, PLAIN)
        work:write('DEL', lock.key)
        work:wake_plain(lock.key)
    end
end

-- The hash ends with the reader that stays longest, if nobody but readers is there.
local function shorten(work, lock)
    if next(lock.writes) ~= nil or next(lock.plains) ~= nil then return end
    local latest = 0
    for _, reader in pairs(lock.reads) do latest = math.max(latest, reader.ends) end
    if latest < lock.ends then work:expire(lock.key, latest) end
end

local function release_shared(work, lock, owner, mode, holds, left)
    local key, known = lock.key, known_of(lock, owner)
    local field = mode == 'write' and owner .. ':write' or owner
    local is_left = left > 0
    if mode ~= 'exclusive' then
        forget(key, owner)
    elseif not is_left then
        forget(key, PLAIN)
    end
    if mode == 'read' then
        work:end_leases(lock, owner, left + 1, holds)
        -- Of Redisson's holds each has a lease of its own.
        local ends = is_left and lease_of(key, owner, left) or nil
        lock.reads[owner].ends, is_left = ends, ends ~= nil
    end
    if is_left then
        work:count(key, field, holds, left - holds)
    elseif mode == 'write' then
        lock.writes[owner] = nil
    elseif mode == 'read' then
        lock.reads[owner] = nil
    else
        lock.plains[owner] = nil
    end
    if is_empty(lock) then
        work:write('DEL', key)
        work:wake_shared(key, mode == 'write' and '1' or '0')
        return
    end
    if not is_left then
        work:write('HDEL', key, field)
        if mode == 'write' and lock.reads[owner] then
            work:write('HSET', key, 'mode', 'read')
            work:wake_shared(key, '1')
        end
    end
    local has = mode_of(lock, owner)
    -- What is known of a plain hold is as it was.
    if has and has ~= 'exclusive' then ends_now(lock, owner, has, known, lease_end(lock, owner)) end
    shorten(work, lock)
end

local function end_holds(work, lock, owner, mode, holds, by)
    if lock.kind == 'plain' then
        release_plain(work, lock, owner, holds - by)
    elseif lock.kind == 'permits' then
        give_back(work, lock, owner, by)
    else
        release_shared(work, lock, owner, mode, holds, holds - by)
    end
end

local function release(work, keys, list)
    local args = arguments(
        'RLOCK.RELEASE key owner [READ|WRITE|PERMITS [k]] [ALL] [IFHELD | IFTOKEN token]', list)
    local key, owner = one_key(args, keys), args:owner()
    local options = args:keywords({
        READ = READ, WRITE = WRITE, PERMITS = PERMITS_BACK, ALL = ALL, IFHELD = IFHELD,
        IFTOKEN = NONE,
    })
    local mode = options.mode or 'exclusive'
    name_of(owner)
    if options.all and options.permits then
        refuse('ERR ALL and a number of permits exclude each other')
    end
    local lock = work:look(key, owner)
    local is_no_lock = lock.kind == 'foreign'
    if options.if_held and not is_no_lock and not holds_of(lock, owner, mode) then return 0 end
    local holds = needs_hold(lock, owner, mode)
    local by = options.all and holds or options.permits or 1
    if by > holds then refuse_too_few(lock, owner) end
    end_holds(work, lock, owner, mode, holds, by)
    return whole(holds - by)
end

-- The one hold of an owner, in this mode, has a new token from now on. What nests shares one.
local function renew_token(work, lock, owner, mode)
    local holds, key = 0, lock.key
    for _, each in ipairs(MODES) do holds = holds + (holds_of(lock, owner, each) or 0) end
    if holds ~= 1 then
        refuse('HELD owner ' .. shown(owner) .. ' holds ' .. shown(key) .. ' more than once, ' ..
            'and TOKEN is for a hold that is alone: release the others first')
    end
    local known = known_of(lock, owner)
    if known then
        needs_greater(key, known.token)
        given(key, known.token)
    end
    local token = new_token(work, { key })
    known = { token = token, since = known and known.since or work.now_us }
    ends_now(lock, owner, mode, known, lease_end(lock, owner))
    return token
end

local function renew(work, keys, list)
    local args = arguments(
        'RLOCK.RENEW key owner lease [READ|WRITE|PERMITS] [NOTIFY channel tag] [WANTED] [WATCHDOG] ' ..
        '[FENCE token|TOKEN]', list)
    local key, owner, lease = one_key(args, keys), args:owner(), args:lease()
    local options = args:keywords({
        READ = READ, WRITE = WRITE, PERMITS = PERMITS, NOTIFY = NONE, WANTED = NONE,
        WATCHDOG = NONE, FENCE = FENCE, TOKEN = TOKEN,
    })
    local lock, mode = work:look(key, name_of(owner)), options.mode or 'exclusive'
    needs_hold(lock, owner, mode)
    local token
    if options.fence == 'new' then
        token = renew_token(work, lock, owner, mode)
    elseif options.fence then
        local known = known_of(lock, owner)
        token = raise(work, key, options.fence, known and known.token or 0)
    end
    set_lease(work, lock, owner, work.now + lease)
    return token and whole(token) or 1
end

-- The owner whose lock FORCE is to free; nil: whoever's.
local function aim_of(args)
    local word = args:take()
    if not word then return nil end
    if word:upper() == 'IFTOKEN' then refuse(REFUSED.IFTOKEN) end
    if word:upper() ~= 'IFOWNER' then args:syntax(word) end
    local owner, more = args:owner(), args:take()
    if more then args:syntax(more) end
    return name_of(owner)
end

local function force(work, keys, list)
    local args = arguments('RLOCK.FORCE key [IFOWNER owner | IFTOKEN token]', list)
    local key, owner = one_key(args, keys), aim_of(args)
    local lock = work:look(key)
    if lock.kind == 'free' then return 0 end
    if lock.kind == 'foreign' then refuse(lock.why) end
    if owner and not mode_of(lock, owner) then return 0 end
    for owner, reader in pairs(lock.reads or {}) do
        work:end_leases(lock, owner, 1, reader.holds)
    end
    work:write('DEL', key)
    if lock.kind == 'shared' then
        work:wake_shared(key, '1')
    else
        work:wake_plain(key)
    end
    return 1
end

-- LIMIT: changes how many permits of a lock there are, while it is held.

local function change_limit(work, keys, list)
    local args = arguments('RLOCK.LIMIT key n', list)
    local key, limit = one_key(args, keys), args:limit()
    if args:take() then args:wrong_number() end
    local lock = work:look(key)
    if lock.kind == 'foreign' then refuse(lock.why) end
    if lock.kind == 'free' then
        refuse('NOTHELD nobody holds permits of %s: the limit comes with the next request',
            shown(key))
    elseif lock.kind ~= 'permits' then
        refuse('WRONGMODE %s is not held by permits, so it has no limit', shown(key))
    end
    local was = lock.pool.limit
    if limit ~= was then
        lock.pool.limit = limit
        work:write_pool(lock)
        if limit > was then work:wake_place(key) end
    end
    return was
end

-- MACQUIRE, MRELEASE, MRENEW: several plain locks at once, all or none.

local function acquire_many(work, keys, list)
    local args = arguments(
        'RLOCK.MACQUIRE numkeys key [key ...] owner lease [BLOCK ms|QUEUE ms] ' ..
        '[NOTIFY channel tag] [WATCHDOG] [ONCE]', list)
    many_keys(keys)
    local owner, lease = args:owner(), args:lease()
    local options = args:keywords({ ONCE = ONCE, BLOCK = NONE, QUEUE = NONE, NOTIFY = NONE,
        WATCHDOG = NONE, PLACE = PLACE })
    name_of(owner)
    local locks, ways = {}, {}
    for at, key in ipairs(keys) do
        locks[at] = work:look(key, owner, is_held_by_others(owner))
        ways[at] = way(locks[at], owner, 'exclusive', options.once) or false
    end
    local begins, left, is_free = false, nil, true
    for at, lock in ipairs(locks) do
        if not ways[at] then
            left, is_free = math.max(left or 0, left_of(work, lock, owner) or 0), false
        end
    end
    -- Several keys have no place: one that waits at the head for a second one would keep
    -- others from the first.
    if not is_free then return options.place and { left > 0 and left or -1, -1 } end
    for at, lock in ipairs(locks) do
        needs_room(lock, owner, 'exclusive', ways[at])
        -- Also for a hold that somebody else began: what cannot be had is refused
        -- before anything is noted.
        begins = begins or ways[at] == 'first' or not known_of(lock, owner)
    end
    -- One token for all, above every counter of theirs.
    local token = begins and new_token(work, keys) or nil
    local greatest = 0
    for at, lock in ipairs(locks) do
        local given = give(work, lock, owner, lease, 'exclusive', ways[at], function()
            return token
        end)
        greatest = math.max(greatest, given)
    end
    return token or greatest
end

local function release_many(work, keys, list)
    local args = arguments('RLOCK.MRELEASE numkeys key [key ...] owner', list)
    many_keys(keys)
    local owner = args:owner()
    args:keywords({})
    name_of(owner)
    local locks, released = {}, 0
    for at, key in ipairs(keys) do
        locks[at] = work:look(key, owner)
        if locks[at].kind == 'foreign' then refuse(locks[at].why) end
    end
    for _, lock in ipairs(locks) do
        local holds = holds_of(lock, owner, 'exclusive')
        if holds then
            end_holds(work, lock, owner, 'exclusive', holds, 1)
            released = released + 1
        end
    end
    return released
end

local function renew_many(work, keys, list)
    local args = arguments('RLOCK.MRENEW numkeys key [key ...] owner lease [NOTIFY channel tag]', list)
    many_keys(keys)
    local owner, lease = args:owner(), args:lease()
    args:keywords({ NOTIFY = NONE })
    name_of(owner)
    local locks = {}
    for at, key in ipairs(keys) do
        locks[at] = work:look(key, owner)
        needs_hold(locks[at], owner, 'exclusive')
    end
    for _, lock in ipairs(locks) do set_lease(work, lock, owner, work.now + lease) end
    return 1
end

-- INFO: describes a lock, also a free one, and changes nothing.

-- Without RESP3 the server knows no maps.
local function map(pairs_of)
    if not redis.setresp then return pairs_of end
    local fields = {}
    for at = 1, #pairs_of, 2 do fields[pairs_of[at]] = pairs_of[at + 1] end
    return { map = fields }
end

local RANK = { exclusive = 0, write = 1, read = 2, permits = 3 }

-- So many holders are listed unless COUNT says otherwise.
local USUAL = 1000

local function holders_of(lock)
    local all = {}
    local function add(owner, mode, holds, ends)
        table.insert(all, { owner = owner, mode = mode, holds = holds, ends = ends })
    end
    if lock.kind == 'plain' then
        add(lock.owner, 'exclusive', lock.holds, lock.ends)
    elseif lock.kind == 'shared' then
        for owner, holds in pairs(lock.plains) do add(owner, 'exclusive', holds, lock.ends) end
        for owner, holds in pairs(lock.writes) do add(owner, 'write', holds, lock.ends) end
        for owner, reader in pairs(lock.reads) do add(owner, 'read', reader.holds, reader.ends) end
    elseif lock.kind == 'permits' then
        for owner, its in pairs(lock.permits) do add(owner, 'permits', its.holds, its.ends) end
    end
    table.sort(all, function(a, b)
        if a.mode ~= b.mode then return RANK[a.mode] < RANK[b.mode] end
        return a.owner < b.owner
    end)
    return all
end

-- One of them, as INFO shows it.
local function entry_of(work, lock, holder)
    local known = known_of(lock, holder.owner)
    local held = known and math.floor((work.now_us - known.since) / 1000)
    return map({
        'owner', holder.owner,
        'mode', holder.mode,
        holder.mode == 'permits' and 'permits' or 'holds', whole(holder.holds),
        'remaining-ms', holder.ends ~= NEVER and whole(math.max(holder.ends - work.now, 0)),
        'held-ms', held and math.max(held, 0) or false,
        'token', known and known.token or false,
        'watchdog', false,
        'wanted-ms', false,
    })
end

local function info(work, keys, list)
    local args = arguments('RLOCK.INFO key [COUNT n]', list)
    local key = one_key(args, keys)
    local most = args:keywords({ COUNT = COUNT }).count or USUAL
    local lock = look(key, work.now)
    if lock.kind == 'foreign' then refuse(lock.why) end
    local holders, listed = holders_of(lock), {}
    local mode = holders[1] and holders[1].mode or 'free'
    for at = 1, math.min(#holders, most) do listed[at] = entry_of(work, lock, holders[at]) end
    local all = { 'mode', mode, 'holders', listed, 'waiters', 0, 'oldest-wait-ms', false }
    if lock.kind == 'permits' then
        local pool = lock.pool
        local of_pool = {
            'limit', pool.limit,
            'asked-limit', pool.asked,
            'available', math.max(pool.limit - pool.out, 0),
        }
        for _, value in ipairs(of_pool) do table.insert(all, value) end
    end
    return map(all)
end

-- CANCEL: a request is given up, and with it its place in the queue. It releases nothing.

local function cancel(work, keys, list)
    local args = arguments('RLOCK.CANCEL key owner [READ|WRITE|PERMITS] [PLACE name]', list)
    local key, owner = one_key(args, keys), args:owner()
    local options = args:keywords({
        READ = READ, WRITE = WRITE, PERMITS = PERMITS, PLACE = PLACE_NAME,
    })
    name_of(owner)
    local place = options.place
    return place and work:give_up(key, place.name) and 1 or 0
end

-- VERSION: of this library, and whether there is the module.

local function version(_, keys, list)
    arguments('rlock1_version', list):keywords({})
    if #keys > 0 then refuse('ERR rlock1_version takes no keys') end
    return VERSION
end

-- THE FRONT of the module: where it is loaded it decides, so that there is one order of
-- waiters and of tokens.

-- Redis before 7.0 cannot be asked, and loads no rlock.
local function is_module_there()
    if not redis.acl_check_cmd then return false end
    return (pcall(redis.acl_check_cmd, 'RLOCK.ACQUIRE', 'key', 'owner', '1'))
end

-- The arguments without PLACE, which the module does not know; whether it was there.
local function without_place(list, from, words)
    local rest, has_place, at = {}, false, 1
    while at <= #list do
        if at >= from and list[at]:upper() == 'PLACE' then
            has_place, at = true, at + words
        else
            table.insert(rest, list[at])
            at = at + 1
        end
    end
    return rest, has_place
end

-- A reply's pairs as maps, as INFO makes them.
local function maps(reply)
    for at = 2, #reply, 2 do
        local value = reply[at]
        if type(value) == 'table' then
            for each, entry in ipairs(value) do
                if type(entry) == 'table' then value[each] = map(entry) end
            end
        end
    end
    return map(reply)
end

-- What the module replies to a call of the function of this name.
local function ask_module(name, keys, list)
    if name == 'version' then return VERSION .. ' module' end
    local takes_many = name:sub(1, 1) == 'm'
    local waits = name == 'acquire' or name == 'macquire'
    local rest, has_place = list, false
    if waits then rest, has_place = without_place(list, 3, 3) end
    if name == 'cancel' then rest = without_place(list, 2, 2) end
    local command = { 'RLOCK.' .. name:upper() }
    if takes_many then table.insert(command, tostring(#keys)) end
    for _, words in ipairs({ keys, rest }) do
        for _, word in ipairs(words) do table.insert(command, word) end
    end
    local reply = redis.pcall(unpack(command))
    if name == 'info' and type(reply) == 'table' and not reply.err then return maps(reply) end
    if reply == false and has_place then
        local left = redis.pcall('PTTL', keys[1])
        return { type(left) == 'number' and left >= 0 and left + 1 or -1, -1 }
    end
    return reply
end

-- THE SHORT WAY of what most calls are: a plain lock that is free, with nothing else under its
-- names, and its release by who alone has it. It does what the long way would, in a third of
-- the time; nil: it is something else, and the long way decides. Here each call of the server's
-- counts: the first write is not asked for before, for if it is refused nothing has changed.

-- Whether these are the arguments that clients say when they first try.
local function is_first_try(list)
    local number = #list
    if number == 2 then return true end
    if list[3] ~= 'ONCE' then return false end
    return number == 3 or number == 6 and list[4] == 'PLACE' and list[6] == '0' and
        #list[5] >= 1 and #list[5] <= LONGEST_PLACE
end

local function is_lawful(owner)
    return #owner <= LONGEST_OWNER and is_owner(owner) and owner ~= '*'
end

-- Behind the lock stand none but its own names.
local function is_declared(keys, counter, queue, places)
    for at = 2, #keys do
        local key = keys[at]
        if key ~= queue and key ~= places and key ~= counter then return false end
    end
    return true
end

local function acquire_free(keys, list)
    local key, owner, lease = keys[1], list[1], list[2] and number(list[2], 1)
    local of = stem_of(key)
    if not lease or not of.is_whole or not is_first_try(list) or not is_lawful(owner) then
        return nil
    end
    local counter, queue = 'redisson_lock_token:' .. of.name, 'rlock1_queue:' .. of.name
    if not is_declared(keys, counter, queue, 'rlock1_places:' .. of.name) or
        some_are_ahead and recall(key, AHEAD) or
        redis.pcall('EXISTS', key, counter, queue) ~= 0 then
        return nil
    end
    local time = redis.pcall('TIME')
    if time.err then return nil end
    local us = time[1] * 1000000 + time[2]
    local ends, token = (us - us % 1000) / 1000 + lease, us > last and us or last + 1
    if token > MOST_MS or not redis.acl_check_cmd('PEXPIREAT', key, '1') or
        redis.pcall('HSET', key, owner, '1') ~= 1 then
        return nil
    end
    redis.call('PEXPIREAT', key, ends)
    last = token
    remember_plain(key, owner, ends, token, us)
    return token
end

-- Of a hold that the library does not know the hash may be large.
local function release_last(keys, list)
    local key, owner, number = keys[1], list[1], #list
    if number ~= 1 and not (number == 2 and list[2] == 'IFHELD') or
        not is_known_plain(key, owner) or cluster == nil then
        return nil
    end
    local name = stem_of(key).name
    local queue = 'rlock1_queue:' .. name
    if not stem.is_whole or
        not is_declared(keys, 'redisson_lock_token:' .. name, queue, 'rlock1_places:' .. name) then
        return nil
    end
    local fields, left = redis.pcall('HGETALL', key), redis.pcall('PTTL', key)
    if fields[1] ~= owner or fields[2] ~= '1' or fields[3] or type(left) ~= 'number' or
        left < 0 or redis.pcall('EXISTS', queue, 'redisson_lock_queue:' .. name) ~= 0 then
        return nil
    end
    local channel = 'redisson_lock__channel:' .. name
    local publish = cluster and 'SPUBLISH' or 'PUBLISH'
    if not redis.acl_check_cmd(publish, channel, '0') or redis.pcall('DEL', key) ~= 1 then
        return nil
    end
    redis.call(publish, channel, '0')
    forget(key, PLAIN)
    return 0
end

-- THE FUNCTIONS, with what they do, what the server lets them do, and whether they
-- take memory, for which the module's commands are refused when there is none.

local FUNCTIONS = {
    rlock1_acquire = { act = acquire, short = acquire_free, takes_memory = true },
    rlock1_release = { act = release, short = release_last },
    rlock1_renew = { act = renew },
    rlock1_macquire = { act = acquire_many, takes_memory = true },
    rlock1_mrelease = { act = release_many },
    rlock1_mrenew = { act = renew_many },
    rlock1_force = { act = force },
    rlock1_limit = { act = change_limit, takes_memory = true },
    rlock1_cancel = { act = cancel },
    rlock1_info = { act = info, flags = { 'no-writes', 'allow-oom' } },
    rlock1_version = { act = version, flags = { 'no-writes', 'allow-oom' } },
}

local function call(name, keys, args)
    local one, work = FUNCTIONS[name], nil
    local has_module = is_module_there()
    -- A script keeps a counter for each lock, and has no memory: it goes the long way.
    local short = IS_LIBRARY and not has_module and one.short and args[1] and keys[1] and
        one.short(keys, args)
    if short then return short end
    keys = locks_among(keys)
    if has_module then return ask_module(name:sub(#'rlock1_' + 1), keys, args) end
    local fine, reply = pcall(function()
        work = begin()
        return one.act(work, keys, args)
    end)
    if not fine then
        local raised = type(reply) == 'table' and reply
        if raised and raised.fault then return redis.error_reply(raised.fault) end
        if not raised or not raised.refusal then error(reply, 0) end
        reply = redis.error_reply(raised.refusal)
    end
    return work:carry_out(keys[1], one.takes_memory) or reply
end

if IS_LIBRARY then
    -- One by one: while a library is loaded there is no `pairs`.
    local function register(name)
        local one = FUNCTIONS[name]
        redis.register_function({
            function_name = name,
            callback = function(keys, args) return call(name, keys, args) end,
            flags = one.flags or (one.takes_memory and {} or { 'allow-oom' }),
        })
    end
    register('rlock1_acquire')
    register('rlock1_release')
    register('rlock1_renew')
    register('rlock1_macquire')
    register('rlock1_mrelease')
    register('rlock1_mrenew')
    register('rlock1_force')
    register('rlock1_limit')
    register('rlock1_cancel')
    register('rlock1_info')
    register('rlock1_version')
    return
end

-- Where the script runs in a cluster, CLUSTER stands before the name.
local at = cluster and 2 or 1
local name = ARGV[at]
if not FUNCTIONS[name] then
    return redis.error_reply('ERR the first argument must name a function, such as rlock1_acquire')
end
local rest = {}
for following = at + 1, #ARGV do rest[following - at] = ARGV[following] end
return call(name, KEYS, rest)
