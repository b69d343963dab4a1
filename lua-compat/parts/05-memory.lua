
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
    young[name], old[name] = nil, nil
end

local function remember(key, what, known)
    forget(key, what)
    if not IS_LIBRARY or #key + #what > LONGEST_NAME then return end
    if remembered >= MOST_REMEMBERED then
        young, old, remembered = {}, young, 0
    end
    young[stem_of(key).memory .. what] = known
    remembered = remembered + 1
end

-- Of each owner's hold: { token, since, ends }. Of a key, under no owner's name, the
-- plain hold that the library gave there last: { owner, ends }.
local PLAIN = ''

local function remember_plain(key, owner, ends)
    remember(key, PLAIN, { owner = owner, ends = ends })
end

local function is_known_plain(key, owner)
    local known = recall(key, PLAIN)
    return known ~= nil and known.owner == owner
end
