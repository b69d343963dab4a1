
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
