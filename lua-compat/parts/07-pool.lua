
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
