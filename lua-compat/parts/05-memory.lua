
-- MEMORY: what a library knows beside the keyspace. Nothing depends on it but that a
-- nested hold gets the token of the first, and that a plain hold is not taken for a
-- dead reader. Of two generations the older goes when the younger is full.

local MOST_REMEMBERED, LONGEST_NAME = 10000, 2048
local young, old, remembered = {}, {}, 0

local function recall(key, what)
    local name = stem_of(key).memory .. what
    return young[name] or old[name]
end

local function forget(key, what)
    local name = stem_of(key).memory .. what
    if young[name] then
        young[name], remembered = nil, remembered - 1
    end
    old[name] = nil
end

local function remember(key, what, known)
    if not IS_LIBRARY or #key + #what > LONGEST_NAME then return forget(key, what) end
    local name = stem_of(key).memory .. what
    if not young[name] then
        if remembered >= MOST_REMEMBERED then
            young, old, remembered = {}, young, 0
        end
        remembered = remembered + 1
    end
    young[name], old[name] = known, nil
end

-- Of each owner's hold: { token, since, ends }. Of a key, under no owner's name, the
-- plain hold that the library gave there last: the same and its owner, or without token and
-- since where the token is another's.
local PLAIN = ''

local function remember_plain(key, owner, ends, token, since)
    remember(key, PLAIN, { owner = owner, ends = ends, token = token, since = since })
end

local function is_known_plain(key, owner)
    local known = recall(key, PLAIN)
    return known ~= nil and known.owner == owner
end
