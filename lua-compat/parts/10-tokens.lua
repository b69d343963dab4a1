
-- TOKENS: each greater than all before it, and not less than the microseconds since
-- 1970, so that they keep rising across a restart as far as the clock does. Where a
-- counter is kept beside the lock, also above that. A script has no memory: there the
-- counter is always kept.

local last = 0

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
    -- What INCR would take, and Lua can count.
    local is_number = value and (value == '0' or value:find('^%-?[1-9]%d*$'))
    local counted = is_number and tonumber(value)
    if not counted or counted >= MOST_MS then
        refuse(WRONG_TYPE .. ': redisson_lock_token:... of ' .. shown(key) .. ', its fencing ' ..
            'counter, is no integer that can be raised; use another name, or DEL it')
    end
    return name, counted
end

-- The token of a hold of these keys that begins now.
local function new_token(work, keys)
    local token, counters = math.max(last + 1, work.now_us), {}
    for _, key in ipairs(keys) do
        local name, counted = counter_of(key)
        if name then
            counters[name] = counted
            token = math.max(token, counted + 1)
        end
    end
    last = token
    -- It is raised, which leaves it its TTL.
    for name, counted in pairs(counters) do work:write('INCRBY', name, text(token - counted)) end
    return token
end

-- How far ahead of the clock a token may be that a client brings: a day, us. One that is far
-- ahead would take the tokens of every lock with it, since all draw from one row.
local AHEAD_US = 24 * 3600 * 10 ^ 6

-- How long a counter lives that was made by being raised, after it was last raised.
local KEPT_MS = 30 * 24 * 3600 * 1000

-- The counter of a lock is at least this from now on; what it is.
local function raise(work, key, least)
    local name, counted = counter_of(key, true)
    if not name then
        refuse('ERR FENCE needs the fencing counter of ' .. shown(key) .. ', which would lie in ' ..
            'another slot of the cluster: use a name whose hash tag is whole, or one without braces')
    end
    if least > math.max(counted, last, work.now_us + AHEAD_US) then
        refuse('ERR the token %.0f is greater than all that this server has given, and more than ' ..
            'a day ahead of its clock', least)
    end
    local left, token = ask('PTTL', name), math.max(counted, least)
    work:write('INCRBY', name, text(token - counted))
    -- One that was there without a TTL is to stay.
    if left ~= -1 then work:write('PEXPIREAT', name, text(work.now + math.max(left, KEPT_MS))) end
    return token
end
