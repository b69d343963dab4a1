
-- INFO: describes a lock, also a free one, and changes nothing.

-- Without RESP3 the server knows no maps.
local function map(pairs_of)
    if not redis.setresp then return pairs_of end
    local fields = {}
    for at = 1, #pairs_of, 2 do fields[pairs_of[at]] = pairs_of[at + 1] end
    return { map = fields }
end

local RANK = { exclusive = 0, write = 1, read = 2 }

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
    end
    table.sort(all, function(a, b)
        if a.mode ~= b.mode then return RANK[a.mode] < RANK[b.mode] end
        return a.owner < b.owner
    end)
    return all
end

local function info(work, keys, list)
    local args = arguments('RLOCK.INFO key', list)
    local key = one_key(args, keys)
    if args:take() then args:wrong_number() end
    local lock = look(key, work.now)
    if lock.kind == 'foreign' then refuse(lock.why) end
    local holders = holders_of(lock)
    local mode = holders[1] and holders[1].mode or 'free'
    for at, holder in ipairs(holders) do
        local known = known_of(lock, holder.owner)
        local held = known and math.floor((work.now_us - known.since) / 1000)
        holders[at] = map({
            'owner', holder.owner,
            'mode', holder.mode,
            'holds', whole(holder.holds),
            'remaining-ms', holder.ends ~= NEVER and math.max(holder.ends - work.now, 0),
            'held-ms', held and math.max(held, 0) or false,
            'token', known and known.token or false,
            'watchdog', false,
        })
    end
    return map({ 'mode', mode, 'holders', holders, 'waiters', 0, 'oldest-wait-ms', false })
end
