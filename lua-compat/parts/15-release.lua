
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
