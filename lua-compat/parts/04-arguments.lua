
-- ARGUMENTS, read from left to right.

-- A decimal number without sign, blanks or leading zeros, as the server reads it.
-- Lua's own tonumber takes more: 0x10, 1e3, ' 5 '. The last one is remembered: most calls
-- come with the same lease.
local read_text, read_value
local function number(text, least)
    if text ~= read_text then
        if text ~= '0' and not text:find('^[1-9]%d*$') then return nil end
        read_text, read_value = text, tonumber(text)
    end
    local value = read_value
    if value >= least and value <= MOST_MS then return value end
end

-- A place in the queue of a lock: how long its name may be, and for how long it may be
-- kept without a try.
local LONGEST_PLACE, MOST_PLACE_MS = 100, 3600 * 1000

-- A number of permits, or a limit of them.
local function permits_in(text)
    local value = number(text, 1)
    return value and value <= MOST_PERMITS and value or nil
end

local Args = {}
Args.__index = Args

local function arguments(usage, list)
    return setmetatable({ usage = usage, list = list, at = 0 }, Args)
end

-- The next one, if there is any.
function Args:take()
    self.at = self.at + 1
    return self.list[self.at]
end

function Args:wrong_number()
    refuse('ERR wrong number of arguments; usage: ' .. self.usage)
end

-- The next one, which must be there.
function Args:next()
    return self:take() or self:wrong_number()
end

function Args:syntax(word)
    refuse('ERR syntax error at ' .. shown(word) ..
        ': each keyword once, none but these; usage: ' .. self.usage)
end

-- What stands behind a keyword.
function Args:needs(word, what)
    return self:take() or
        refuse('ERR syntax error: ' .. word .. ' needs ' .. what .. '; usage: ' .. self.usage)
end

-- A number of permits behind a keyword.
function Args:permits(word)
    local given = self:needs(word, 'a number')
    return permits_in(given) or refuse('ERR %s must be a whole number from 1 to %.0f, got %s',
        word, MOST_PERMITS, shown(given))
end

-- The same, if no keyword comes next.
function Args:permits_if_any(word, allowed)
    local following = self.list[self.at + 1]
    if following and not allowed[following:upper()] then return self:permits(word) end
end

-- The token behind FENCE.
function Args:fence(word)
    local given = self:needs(word, 'a token')
    return number(given, 1) or refuse(
        'ERR the token must be a whole number from 1 to %.0f, got %s', MOST_MS, shown(given))
end

-- The limit of permits that is to be in force.
function Args:limit()
    local given = self:next()
    return permits_in(given) or refuse('ERR the limit must be a whole number from 1 to %.0f, ' ..
        'got %s', MOST_PERMITS, shown(given))
end

-- The name of a place in the queue.
function Args:place_name(word)
    local name = self:needs(word, 'a name')
    if #name < 1 or #name > LONGEST_PLACE then
        refuse('ERR the name of a place must be 1 to %d bytes long, got %d', LONGEST_PLACE, #name)
    end
    return { name = name }
end

-- The same, and for how long it is kept, ms; 0: it is given up.
function Args:place(word)
    local place, given = self:place_name(word), self:needs(word, 'a number of ms')
    place.ms = number(given, 0)
    if not place.ms or place.ms > MOST_PLACE_MS then
        refuse('ERR a place can be kept for 0 to %.0f ms, got %s', MOST_PLACE_MS, shown(given))
    end
    return place
end

-- How many of something are to be listed at the most.
function Args:count(word)
    local given = self:next()
    return number(given, 1) or refuse('ERR %s must be a whole number from 1 to %.0f, got %s',
        word, MOST_MS, shown(given))
end

function Args:owner()
    local owner = self:next()
    if #owner < 1 or #owner > LONGEST_OWNER then
        refuse('ERR the owner must be 1 to %d bytes long, got %d', LONGEST_OWNER, #owner)
    end
    if owner == 'mode' or owner:sub(-6) == ':write' then
        refuse("ERR the owner must not be 'mode' or end in ':write', which have a meaning " ..
            'in the hash of a lock; got ' .. shown(owner))
    end
    return owner
end

function Args:lease()
    local given = self:next()
    return number(given, 1) or refuse(
        'ERR the lease must be a whole number of ms from 1 to %.0f, got %s', MOST_MS, shown(given))
end

-- What only the module can do. Never ignored: whoever asked for it counts on it.
local REFUSED = {
    QUEUE = 'ERR QUEUE needs the rlock module: a function cannot wait. Try again when a message ' ..
        'says that the lock is free, or its lease is over',
    NOTIFY = 'ERR NOTIFY notifies a connection of its hold, and a script, a function or a module ' ..
        'has none of its own: leave it out',
    WANTED = 'ERR WANTED notifies a connection that somebody waits for its hold, and a script, a ' ..
        'function or a module has none of its own: leave it out',
    BLOCK = 'ERR BLOCK needs the rlock module: a function cannot wait. Leave it out, and try ' ..
        'again when a message says that the lock is free, or its lease is over',
    WATCHDOG = 'ERR WATCHDOG binds a hold to a connection, and a script, a function or a ' ..
        'module has none of its own: leave it out and RENEW the lease',
    IFTOKEN = 'ERR IFTOKEN needs the rlock module: a function does not remember for sure which ' ..
        'hold has which token. Say IFHELD or IFOWNER, with a fresh owner for each acquisition',
}

-- Keywords in any order, each once, up to the end. `allowed` says what each of them
-- sets: {'mode', 'read'} for READ; and how the number behind it is read, if there is any:
-- {'mode', 'permits', 'limit', read} for LIMIT.
function Args:keywords(allowed)
    local found = {}
    for given in self.take, self do
        local word = given:upper()
        local sets = allowed[word]
        if not sets then self:syntax(given) end
        if REFUSED[word] then refuse(REFUSED[word]) end
        local name, value = sets[1], sets[2]
        if found[name] then self:syntax(given) end
        found[name] = value
        if sets[3] then found[sets[3]] = sets[4](self, word, allowed) end
    end
    return found
end

local READ, WRITE = { 'mode', 'read' }, { 'mode', 'write' }
local ONCE, ALL = { 'once', true }, { 'all', true }
local IFHELD = { 'if_held', true }
local LIMIT = { 'mode', 'permits', 'limit', Args.permits }
-- How many are wanted, how many are given back, or the mode alone.
local PERMITS_WANTED = { 'permits', nil, 'permits', Args.permits }
local PERMITS_BACK = { 'mode', 'permits', 'permits', Args.permits_if_any }
local PERMITS = { 'mode', 'permits' }
local FENCE = { 'fence', nil, 'fence', Args.fence }
local TOKEN = { 'fence', 'new' }
local COUNT = { 'count', nil, 'count', Args.count }
local PLACE = { 'place', nil, 'place', Args.place }
local PLACE_NAME = { 'place', nil, 'place', Args.place_name }
local NONE = {}

-- `*` means a connection to the module.
local function name_of(owner)
    if owner == '*' then
        refuse('ERR owner * means a connection, and a script, a function or a module has ' ..
            'none of its own: give an owner id')
    end
    return owner
end

local function one_key(args, keys)
    if #keys ~= 1 then args:wrong_number() end
    local key = keys[1]
    if key:find('^rlock1_') and declared_for(key) then
        refuse('ERR %s is a name of what belongs to a lock: use another name', shown(key))
    end
    return key
end

-- All keys, each once.
local function many_keys(keys)
    if #keys < 1 or #keys > MOST_KEYS then
        refuse("ERR numkeys must be a whole number from 1 to %d, got '%d'", MOST_KEYS, #keys)
    end
    local seen = {}
    for _, key in ipairs(keys) do
        if seen[key] then
            refuse('ERR the key %s is given twice; each must be given once', shown(key))
        end
        seen[key] = true
    end
    return keys
end
