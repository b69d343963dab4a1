
-- NAMES of what belongs to a lock. They are Redisson's.

-- What most names of a lock are made of, of the key that was asked for last: a call asks for
-- the same one many times.
--   name      `{key}`; a name that has a brace already is used as it is
--   is_whole  it has no brace at all, so all that is named after it lies in its slot
--   memory    begins what the library remembers of it: no two keys have it in common
local stem = {}
local function stem_of(key)
    if stem.key ~= key then
        local is_whole = not key:find('[{}]')
        stem = {
            key = key,
            name = not is_whole and key:find('{', 1, true) and key or '{' .. key .. '}',
            is_whole = is_whole,
            memory = #key .. ':' .. key,
        }
    end
    return stem
end

local function prefixed(prefix, key) return prefix .. ':' .. stem_of(key).name end

-- The lease key of an owner's read hold number `index`.
local function lease_key(key, owner, index)
    -- Put together without `%s`, which ends a name at a zero byte.
    return stem_of(key).name .. ':' .. owner .. (':rwlock_timeout:%.0f'):format(index)
end

-- What a key's slot is computed from: what stands between the first `{` and the next
-- `}`, if that is anything, else all of it.
local function slot_part(name)
    local open = name:find('{', 1, true)
    local close = open and name:find('}', open + 1, true)
    if close and close > open + 1 then return name:sub(open + 1, close - 1) end
    return name
end

-- Whether the server is part of a cluster. It does not change while it runs. A script is
-- told so, for it would have to ask at each call.
local cluster
if not IS_LIBRARY then cluster = ARGV[1] == 'CLUSTER' end
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
    return stem_of(key).is_whole or slot_part(name) == slot_part(key) or not in_cluster()
end

-- Ends the call if a key beside the lock that is not here may be on another node: then
-- the server refuses to look at two of the slot of which one is not here.
local function needs_settled(key)
    local probe = prefixed('rlock1_probe', key)
    if in_cluster() and is_near(probe, key) then ask('EXISTS', probe, lease_key(key, probe, 1)) end
end

-- Behind the locks a client may declare what belongs to them, for some servers let a script
-- touch no other keys. Of such a name, what it is named after.
local function declared_for(name)
    return name:match('^redisson_lock_token:(.*)$') or name:match('^rlock1_queue:(.*)$') or
        name:match('^rlock1_places:(.*)$')
end

-- The locks among the keys of a call.
local function locks_among(keys)
    if #keys < 2 then return keys end
    local locks, names = {}, {}
    for _, key in ipairs(keys) do
        local of = declared_for(key)
        if not of or not names[of] then
            table.insert(locks, key)
            names[stem_of(key).name] = true
        end
    end
    return locks
end
