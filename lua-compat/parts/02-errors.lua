
-- ERRORS: one line of at most 512 bytes, which says what was wrong and what to do.

local WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'

-- Ends the call with an error reply. What was noted for writing until then is
-- written: the fields of readers that died are gone whatever was asked.
local function refuse(line, ...)
    if select('#', ...) > 0 then line = line:format(...) end
    error({ refusal = line:sub(1, 512) })
end

-- In a cluster, while a slot is on its way from one node to another, the server lets no
-- script at keys that are not here. The server's own words for such a command.
local TRY_AGAIN = 'TRYAGAIN Multiple keys request during rehashing of slot'

local function is_elsewhere(reply)
    local err = type(reply) == 'table' and reply.err
    local says = function(what) return err:find(what, 1, true) ~= nil end
    return err and (says('non local key') or says('during rehashing of the slot'))
end

-- What the server said. Redis before 7.0 puts the script's line and a dash before it.
local function said(reply)
    if is_elsewhere(reply) then return TRY_AGAIN end
    local line = reply.err:gsub('^@user_script: ?%d+: ', ''):gsub('^%-', '')
    return line:find('^%u+ ') and line or 'ERR ' .. line
end

-- What the server replied; nil where a key is of another type. Any other refusal, such as
-- for want of permission, ends the call, and nothing is written: what cannot be read must
-- not be taken for gone.
local function checked(reply)
    if type(reply) ~= 'table' or not reply.err then return reply end
    if reply.err:find('WRONGTYPE', 1, true) then return nil end
    error({ fault = said(reply) })
end

local function ask(...) return checked(redis.pcall(...)) end

-- A name as it can stand in a line: quoted, what is not printable ASCII escaped, cut
-- when it is long.
local function shown(name)
    local text = "'"
    for at = 1, #name do
        if #text > 100 then
            text = text .. '...'
            break
        end
        local byte = name:byte(at)
        if byte == 39 or byte == 92 then
            text = text .. '\\' .. string.char(byte)
        elseif byte >= 32 and byte <= 126 then
            text = text .. string.char(byte)
        else
            text = text .. string.format('\\x%02x', byte)
        end
    end
    return text .. "'"
end

-- The ways to hold a lock, as errors name them; what to say for each; and what another one
-- does not mix with.
local HELD = {
    exclusive = 'as a plain lock', read = 'for READ', write = 'for WRITE', permits = 'by permits',
}
local ADVICE = {
    exclusive = 'leave the mode out', read = 'say READ', write = 'say WRITE',
    permits = 'say PERMITS',
}
local KIND = {
    exclusive = 'a plain lock', read = 'READ and WRITE', write = 'READ and WRITE',
    permits = 'permits',
}

local function other_layout(key)
    return WRONG_TYPE .. ': ' .. shown(key) ..
        ' is a hash, but not laid out as a lock; use another name'
end

local function without_ttl(key)
    return WRONG_TYPE .. ': ' .. shown(key) .. " has no TTL, it may be somebody's data; " ..
        'PEXPIRE it if it is a lock, DEL it if nobody needs it, or use another name'
end

local function refuse_mode(key, owner, asked, held_for)
    refuse('WRONGMODE owner %s holds %s %s, which does not mix with %s: release it first, or ' ..
        'use another name', shown(owner), shown(key), HELD[held_for], KIND[asked])
end

local function refuse_not_held(key, owner, asked, held_for)
    key, owner = shown(key), shown(owner)
    if not held_for then
        refuse('NOTHELD owner %s does not hold %s: its lease ended, it was released, or ' ..
            'never acquired', owner, key)
    end
    refuse('NOTHELD owner %s does not hold %s %s, it holds it %s: %s', owner, key, HELD[asked],
        HELD[held_for], ADVICE[held_for])
end

local function refuse_deeper(key, owner)
    refuse('ERR owner %s cannot nest any deeper on %s: release a hold first',
        shown(owner), shown(key))
end
