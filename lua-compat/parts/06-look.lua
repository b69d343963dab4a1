
-- LOOKING at a key. What is found:
--   kind    'free', 'plain', 'shared' (a read/write lock), or 'foreign': no lock
--   why     of what is foreign: the error line
--   ends    when the key ends, ms since 1970
--   owner, holds   of a plain lock
--   mode    of a shared one: what its field `mode` says
--   reads   by owner: { holds, ends }, those whose lease is not over
--   writes  by owner: holds
--   plains  by owner: holds, of a plain lock that somebody made a read/write lock of
--           (Redisson's does not see plain ones): exclusive until the hash ends
--   dead    the owners whose fields are there and whose lease keys are gone
--   remains true: a hash that nobody holds any more lies where the lock is free

-- When a key ends; nil when it is not there. Redis before 7.0 tells only how much is
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

local function foreign(lock, why)
    lock.kind, lock.why = 'foreign', why
    return lock
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
            if not holds or owner == '' or owner == 'mode' or owner:sub(-6) == ':write' then
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

local function find(key, now)
    local lock = { key = key, kind = 'free' }
    local kind = ask('TYPE', key).ok
    if kind == 'none' then return lock end
    if kind ~= 'hash' then return foreign(lock, WRONG_TYPE) end
    lock.ends = ends_at(key)
    if ask('HLEN', key) > 1 then
        -- Asked first, for the hash may be somebody's, and large.
        lock.mode = ask('HGET', key, 'mode')
        if lock.mode ~= 'read' and lock.mode ~= 'write' then
            return foreign(lock, other_layout(key))
        end
    end
    local fields = ask('HGETALL', key)
    if #fields == 0 then return lock end
    if #fields > 2 then return look_at_shared(lock, fields, now) end
    lock.kind, lock.owner, lock.holds = 'plain', fields[1], count(fields[2])
    if not lock.holds then return foreign(lock, other_layout(key)) end
    -- The module may know it for a lock that somebody has PERSISTed; nobody here can.
    if lock.ends == NEVER then return foreign(lock, without_ttl(key)) end
    return lock
end

local function look(key, now)
    local lock = find(key, now)
    -- The plain hold that was known is over.
    if lock.kind ~= 'shared' and not is_known_plain(key, lock.owner) then forget(key, PLAIN) end
    return lock
end

-- How many holds the owner has in a mode; nil: none.
local function holds_of(lock, owner, mode)
    if lock.kind == 'plain' then
        return mode == 'exclusive' and lock.owner == owner and lock.holds or nil
    end
    if lock.kind ~= 'shared' then return nil end
    if mode == 'exclusive' then return lock.plains[owner] end
    if mode == 'write' then return lock.writes[owner] end
    return lock.reads[owner] and lock.reads[owner].holds
end

-- A mode in which the owner holds the lock; nil: in none.
local function mode_of(lock, owner)
    for _, mode in ipairs({ 'exclusive', 'write', 'read' }) do
        if holds_of(lock, owner, mode) then return mode end
    end
end

-- When the lease of an owner ends that holds the lock. It has one, whatever its modes.
local function lease_end(lock, owner)
    local reader = lock.kind == 'shared' and not lock.writes[owner] and lock.reads[owner]
    return reader and reader.ends or lock.ends
end

-- What is known of the owner's hold, if it is the very one that the library gave: who
-- else had a hand in it changed its lease.
local function known_of(lock, owner)
    local known = recall(lock.key, owner)
    return known and known.ends == lease_end(lock, owner) and known or nil
end

-- The owner's hold, of which this is known, ends at this moment from now on.
local function ends_now(lock, owner, known, at)
    forget(lock.key, owner)
    if not known then return end
    known.ends = at
    remember(lock.key, owner, known)
end

-- Whether anybody but the owner is in this table of holders.
local function has_other(holders, owner)
    local first = next(holders)
    return first ~= nil and (first ~= owner or next(holders, first) ~= nil)
end
