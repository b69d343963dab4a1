
-- TOKENS: each greater than all before it, and not less than the microseconds since
-- 1970, so that they keep rising across a restart as far as the clock does. Where a
-- counter is kept beside the lock, also above that. A script has no memory: there the
-- counter is always kept.

local last = 0

local function counter_of(key)
    local name = prefixed('redisson_lock_token', key)
    if not is_near(name, key) then return nil end
    local value = ask('GET', name)
    if value == nil then refuse(WRONG_TYPE) end
    if not value then return not IS_LIBRARY and name or nil, 0 end
    local counted = value:find('^%d+$') and tonumber(value)
    if not counted or counted >= MOST_MS then
        refuse(WRONG_TYPE .. ': ' .. shown(name) .. ' is no counter of tokens, which go up to %.0f',
            MOST_MS)
    end
    return name, counted
end

-- The token of a hold of these keys that begins now.
local function new_token(work, keys)
    local token, counters = math.max(last + 1, work.now_us), {}
    for _, key in ipairs(keys) do
        local name, counted = counter_of(key)
        if name then
            table.insert(counters, name)
            token = math.max(token, counted + 1)
        end
    end
    last = token
    for _, name in ipairs(counters) do work:write('SET', name, text(token)) end
    return token
end
