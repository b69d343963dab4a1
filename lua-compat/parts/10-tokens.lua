
-- TOKENS: each greater than all before it, and not less than the microseconds since
-- 1970, so that they keep rising across a restart as far as the clock does. Where a
-- counter is kept beside the lock, also above that. A script has no memory: there the
-- counter is always kept.

local last = 0

local function counter_of(key)
    local name = prefixed('redisson_lock_token', key)
    if not is_near(name, key) then return nil end
    local value = ask('GET', name)
    if value == false then
        if IS_LIBRARY then return nil end
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
