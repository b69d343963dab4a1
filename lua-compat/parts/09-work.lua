
-- WORK: what a call has decided to write and to announce.

local Work = {}
Work.__index = Work

local function begin()
    local time = ask('TIME')
    local us = time[1] * 1000000 + time[2]
    local work = { now_us = us, now = math.floor(us / 1000) }
    work.writes, work.messages, work.freed, work.left = {}, {}, {}, {}
    return setmetatable(work, Work)
end

local function text(number) return string.format('%.0f', number) end

function Work:write(...) table.insert(self.writes, { ... }) end

function Work:expire(key, at) self:write('PEXPIREAT', key, text(at)) end

-- The owner has `by` holds more, or fewer, in a field; a first one begins it.
function Work:count(key, field, had, by)
    if had == 0 then
        self:write('HSET', key, field, text(by))
    else
        self:write('HINCRBY', key, field, text(by))
    end
end

-- The lease keys of a reader's holds from one number to another, as far as they are
-- the lock's.
function Work:each_lease(lock, owner, first, last, act)
    for index = first, math.min(last, MOST_READS) do
        local name = lease_key(lock.key, owner, index)
        if is_lease_key(name, lock.key) then act(name) end
    end
end

function Work:end_leases(lock, owner, first, last)
    self:each_lease(lock, owner, first, last, function(name) self:write('DEL', name) end)
end

function Work:move_leases(lock, owner, holds, at)
    self:each_lease(lock, owner, 1, holds, function(name) self:expire(name, at) end)
end

function Work:publish(key, channel, message)
    if not is_near(channel, key) then return end
    local sharded = in_cluster() and redis.REDIS_VERSION_NUM ~= nil
    table.insert(self.messages, { sharded and 'SPUBLISH' or 'PUBLISH', channel, message })
end

-- A plain lock is left free: wakes one waiter of each of Redisson's clients, the head of the
-- queue, and the first in the queue of Redisson's fair lock, each on a channel of its own.
function Work:wake_plain(key)
    local channel = prefixed('redisson_lock__channel', key)
    self:publish(key, channel, '0')
    self:wake_place(key)
    local queue = prefixed('redisson_lock_queue', key)
    local places = prefixed('redisson_lock_timeout', key)
    if not is_near(queue, key) then return end
    local reply = redis.pcall('LINDEX', queue, 0)
    if is_elsewhere(reply) then return end
    local first = checked(reply)
    for at = 1, 64 do
        if type(first) ~= 'string' then return end
        -- Whose place has run out is not there any more.
        local until_ms = ask('ZSCORE', places, first)
        if type(until_ms) ~= 'string' or tonumber(until_ms) > self.now then break end
        first = ask('LINDEX', queue, at)
    end
    if type(first) == 'string' then self:publish(key, channel .. ':' .. first, '0') end
end

-- A read/write lock is left free, or readers may enter: '1' wakes all who wait, and
-- '0' one of each client.
function Work:wake_shared(key, message)
    self:publish(key, prefixed('redisson_rwlock', key), message)
    self:wake_place(key)
end

-- A lock was found free whose last holders have died: that is announced if nobody takes it now.
function Work:found_free(lock)
    local messages = self.messages
    self.messages = {}
    if lock.pool then self:wake_plain(lock.key) else self:wake_shared(lock.key, '0') end
    self.freed[lock.key], self.messages = self.messages, messages
end

-- How many permits there are, and how many are out; with `...` an owner's too, at once.
function Work:write_pool(lock, ...)
    local pool = lock.pool
    local out = text(whole(pool.out))
    self:write('HSET', lock.key, 'mode', 'permits ' .. text(pool.asked) .. ' ' ..
        text(pool.limit) .. ' ' .. out, ...)
end

-- The fields of owners that died go, and with the last of them the hash.
function Work:bury(lock)
    if lock.remains then
        self:write('DEL', lock.key)
        self:found_free(lock)
    elseif lock.kind == 'permits' then
        if lock.pool.out ~= lock.was_out then self:write_pool(lock) end
        for _, owner in ipairs(lock.dead) do self:write('HDEL', lock.key, owner) end
    elseif lock.kind == 'shared' then
        for _, owner in ipairs(lock.dead) do self:write('HDEL', lock.key, owner) end
    end
end

-- Looks at a key for a call that may write.
function Work:look(key, owner, is_in_doubt)
    local lock = look(key, self.now, owner, is_in_doubt)
    self:bury(lock)
    return lock
end

-- Redis before 7.0 cannot be asked what a user may do, and a script that is refused at its second
-- write has done the first. So each write is tried by words that change nothing, mostly for
-- they are wrong; no field and no place has the name ''.
local IN_VAIN = {
    HSET = { 'mode', 'read', 'mode' },
    HINCRBY = { 'mode', 'no number' },
    HDEL = { '' },
    PEXPIREAT = { 'no number' },
    INCRBY = { 'no number' },
    SET = { '', 'no option' },
    ZADD = { 'no number', '' },
    ZREM = { '' },
}

local function in_vain(command)
    local name, key = command[1], command[2]
    -- A key that is to go was read before: there the command is in question.
    if name == 'DEL' then return { 'DEL', prefixed('rlock1_probe', key) } end
    return { name, key, unpack(IN_VAIN[name]) }
end

local function is_refused(command)
    local reply = redis.pcall(unpack(command))
    local line = type(reply) == 'table' and reply.err
    return line and line:find('The user executing the script', 1, true) ~= nil
end

local function no_right(command)
    local line = 'NOPERM this user may not run %s on %s, which rlock has to; nothing was changed'
    return redis.error_reply(line:format(command[1], shown(command[2])))
end

-- A library's functions have flags that say whether they may run when memory is full.
-- A script is stopped at a write that takes memory if it is the first, so it begins
-- with one that does nothing, and takes memory or does not. The error reply, if any.
local function begin_script(key, takes_memory)
    local probe = prefixed('rlock1_probe', key)
    if not is_near(probe, key) then return end
    local reply
    if takes_memory then
        reply = redis.pcall('SETRANGE', probe, 0, '')
    else
        reply = redis.pcall('DEL', probe)
    end
    if type(reply) == 'table' then return redis.error_reply(said(reply)) end
end

-- The first write or message that this user has no right to, as an error reply.
function Work:lacks_right()
    for _, list in ipairs({ self.writes, self.messages }) do
        for _, command in ipairs(list) do
            if not redis.acl_check_cmd(unpack(command)) then return no_right(command) end
        end
    end
end

-- The same before 7.0. Messages are sent by that: nobody can act on one before the writes are done.
function Work:lacks_right_by_trying()
    local tried = {}
    for _, command in ipairs(self.writes) do
        local what = command[1] .. ' ' .. command[2]
        if not tried[what] and is_refused(in_vain(command)) then return no_right(command) end
        tried[what] = true
    end
    for _, message in ipairs(self.messages) do
        if is_refused(message) then return no_right(message) end
    end
    self.messages = {}
end

-- Carries out what was noted, all of it or nothing; the error reply if it must not be.
function Work:carry_out(key, takes_memory)
    for _, messages in pairs(self.freed) do
        for _, message in ipairs(messages) do table.insert(self.messages, message) end
    end
    local can_ask = redis.acl_check_cmd ~= nil
    local refused = can_ask and self:lacks_right()
    if not refused and not IS_LIBRARY and self.writes[1] then
        refused = begin_script(key, takes_memory)
    end
    -- Only now: what comes behind a first write may take memory that there is not.
    if not refused and not can_ask then refused = self:lacks_right_by_trying() end
    if refused then return refused end
    for _, list in ipairs({ self.writes, self.messages }) do
        for _, command in ipairs(list) do redis.call(unpack(command)) end
    end
end
