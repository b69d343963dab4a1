
-- WHAT IS FOUND of a lock when a key is looked at:
--   kind    'free', 'plain', 'shared' (a read/write lock), 'permits', or 'foreign': no lock
--   why     of what is foreign: the error line
--   ends    when the key ends, ms since 1970
--   owner, holds   of a plain lock
--   mode    of a shared one: what its field `mode` says
--   reads   by owner: { holds, ends }, those whose lease is not over
--   writes  by owner: holds
--   plains  by owner: holds, of a plain lock that somebody made a read/write lock of
--           (Redisson's does not see plain ones): exclusive until the hash ends
--   dead    the owners whose fields are there, and whose lease keys are gone or whose
--           permits have run out
--   pool    of permits: { asked, limit, out }, what its field `mode` says without the dead
--   fields  how many owners' fields there are
--   permits by owner: { holds, ends, ends_text }: of those that were read
--   remains true: a hash that nobody holds any more lies where the lock is free

-- When a key ends; nil when it is not there. Redis before 7.0 gives only how much is
-- left.
local function ends_at(key)
    local at
    if redis.REDIS_VERSION_NUM then
        at = ask('PEXPIRETIME', key)
    else
        local now, left = ask('TIME'), ask('PTTL', key)
        at = left < 0 and left or left + now[1] * 1000 + math.floor(now[2] / 1000)
    end
    if at == -2 then return nil end
    return at == -1 and NEVER or at
end

-- A number of holds: a positive integer as the server writes it.
local function count(text)
    local most = '9223372036854775807'
    if not text:find('^[1-9]%d*$') or #text > #most or (#text == #most and text > most) then
        return nil
    end
    return tonumber(text)
end

-- A number as a reply can carry it.
local function whole(value)
    return math.min(value, 2 ^ 63 - 1024)
end

-- Whether a field of this name can stand for an owner: others have another meaning.
local function is_owner(name)
    return name ~= '' and name ~= 'mode' and name:sub(-6) ~= ':write'
end

local function foreign(lock, why)
    lock.kind, lock.why = 'foreign', why
    return lock
end
