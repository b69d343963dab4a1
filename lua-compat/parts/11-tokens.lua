
-- TOKENS: each greater than all before it, and not less than the microseconds since
-- 1970, so that they keep rising across a restart as far as the clock does. Where a
-- counter is kept beside the lock, also above that, which lifts the tokens of no other
-- lock. A script has no memory: there the counter is always kept, for some weeks.

-- The last by the clock.
local last = 0

-- What is ahead of the clock is remembered, for the counter that lifted it may be lost;
-- under a name that no owner has.
local AHEAD = 'mode'
local some_are_ahead = false

local function given_before(key)
    local known = recall(key, AHEAD)
    return known and known.token or 0
end

local function given(key, token)
    if token <= last then return end
    -- Nothing is above the greatest: once its counter is gone the lock begins anew.
    if token >= MOST_MS then return forget(key, AHEAD) end
    some_are_ahead = true
    remember(key, AHEAD, { token = math.max(token, given_before(key)) })
end

-- Nothing is above the greatest token.
local function needs_greater(key, token)
    if token < MOST_MS then return end
    refuse(WRONG_TYPE .. ': redisson_lock_token:... of %s, its fencing counter, has reached ' ..
        '%.0f, and no token is greater; use another name, or DEL it and what storage ' ..
        'remembers', shown(key), MOST_MS)
end

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
    -- What INCR would take: an integer of 64 bits.
    local is_number = value and (value == '0' or value:find('^%-?[1-9]%d*$'))
    local digits = is_number and value:gsub('%-', '')
    local last_one = is_number and '922337203685477580' .. (digits == value and '7' or '8')
    local fits = is_number and (#digits < 19 or #digits == 19 and digits <= last_one)
    local counted = fits and tonumber(value)
    if not counted then
        refuse(WRONG_TYPE .. ': redisson_lock_token:... of ' .. shown(key) .. ', its fencing ' ..
            'counter, is no integer that can be raised; use another name, or DEL it')
    end
    needs_greater(key, counted)
    return name, counted
end

-- How long a counter lives that was made by being raised, after it was last raised.
local KEPT_MS = 30 * 24 * 3600 * 1000

-- A counter is raised from what it says. Its TTL is moved on, and one that is made now gets
-- one. One that was there without a TTL is to stay.
local function write_counter(work, name, counted, token)
    local left = ask('PTTL', name)
    work:write('INCRBY', name, text(token - counted))
    if left ~= -1 then work:write('PEXPIREAT', name, text(work.now + math.max(left, KEPT_MS))) end
end

-- The token of a hold of these keys that begins now.
local function new_token(work, keys)
    local by_clock, counters = math.max(last + 1, work.now_us), {}
    local token = by_clock
    for _, key in ipairs(keys) do
        local name, counted = counter_of(key)
        if name then
            counters[name] = counted
            token = math.max(token, counted + 1)
        end
        token = math.max(token, given_before(key) + 1)
    end
    if token > MOST_MS then
        refuse('ERR this server\'s clock is beyond the year 2255, and no token is greater than ' ..
            '%.0f: set the clock', MOST_MS)
    end
    if token == by_clock then last = token end
    for _, key in ipairs(keys) do given(key, token) end
    for name, counted in pairs(counters) do
        if IS_LIBRARY then
            -- It is raised, which leaves it its TTL.
            work:write('INCRBY', name, text(token - counted))
        else
            write_counter(work, name, counted, token)
        end
    end
    return token
end

-- How far ahead of the clock a token may be that a client brings: a day, us.
local AHEAD_US = 24 * 3600 * 10 ^ 6

-- The counter of a lock is at least what a client brings from now on, and what the owner got
-- last for it; what it is.
local function raise(work, key, brought, newest)
    local name, counted = counter_of(key, true)
    if not name then
        refuse('ERR FENCE needs the fencing counter of ' .. shown(key) .. ', which would lie in ' ..
            'another slot of the cluster: use a name whose hash tag is whole, or one without braces')
    end
    local had = math.max(counted, newest, given_before(key))
    if brought > math.max(had, last, work.now_us + AHEAD_US) then
        refuse('ERR the token %.0f is greater than all that this server has given for this lock, ' ..
            'and more than a day ahead of its clock', brought)
    end
    local token = math.max(counted, newest, brought)
    given(key, token)
    write_counter(work, name, counted, token)
    return token
end
