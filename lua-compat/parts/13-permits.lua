
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
