
-- NAMES of what belongs to a lock. They are Redisson's.

-- `prefix:{key}`; a name that has a brace already is used as it is.
local function prefixed(prefix, key)
    if key:find('{', 1, true) then return prefix .. ':' .. key end
    return prefix .. ':{' .. key .. '}'
end

-- The lease key of an owner's read hold number `index`.
local function lease_key(key, owner, index)
    local name = key:find('{', 1, true) and key or '{' .. key .. '}'
    -- Put together without `%s`, which ends a name at a zero byte.
    return name .. ':' .. owner .. (':rwlock_timeout:%.0f'):format(index)
end

-- What a key's slot is computed from: what stands between the first `{` and the next
-- `}`, if that is anything, else all of it.
local function slot_part(name)
    local open = name:find('{', 1, true)
    local close = open and name:find('}', open + 1, true)
    if close and close > open + 1 then return name:sub(open + 1, close - 1) end
    return name
end

-- Whether the server is part of a cluster. It does not change while it runs.
local cluster
local function in_cluster()
    if cluster == nil then
        local info = ask('INFO', 'cluster')
        cluster = info:find('cluster_enabled:1', 1, true) ~= nil
    end
    return cluster
end

-- Whether what is named after a key can be reached with it. Names with a brace that
-- is no hash tag have theirs in another slot.
local function is_near(name, key)
    return slot_part(name) == slot_part(key) or not in_cluster()
end

-- Ends the call if a key beside the lock that is not here may be on another node: then
-- the server refuses to look at two of the slot of which one is not here.
local function needs_settled(key)
    local probe = prefixed('rlock_probe', key)
    if in_cluster() and is_near(probe, key) then ask('EXISTS', probe, lease_key(key, probe, 1)) end
end
