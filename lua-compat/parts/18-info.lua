
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
