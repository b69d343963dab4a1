
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
