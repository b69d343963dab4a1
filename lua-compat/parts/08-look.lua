
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
