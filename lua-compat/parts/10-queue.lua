
-- THE QUEUE of those who wait long enough to want a turn: one zset has the places in the
-- order in which they were taken, and another until when each of them is kept, ms since
-- 1970. A place is alive as long as its owner goes on trying.

-- The names of both; nil: they would lie in another slot.
local function queue_of(key)
    local queue = prefixed('rlock1_queue', key)
    if is_near(queue, key) then return queue, prefixed('rlock1_places', key) end
end

-- While a slot moves, a queue that may be on the other node is taken for none.
local function ask_queue(...)
    local reply = redis.pcall(...)
    return not is_elsewhere(reply) and checked(reply) or nil
end

-- So many whose time is over go in one call.
local MOST_GO = 64

-- The place that is to have the lock next, without the one of this name; nil: there is none.
-- Those whose time is over go. Whether any went.
function Work:head(key, without)
    local queue, places = queue_of(key)
    local first = queue and (ask_queue('ZRANGE', queue, 0, 0) or {})[1]
    -- What is no queue is none.
    if not first or not ask_queue('ZCARD', places) then return nil, false end
    local gone = false
    for at = 1, MOST_GO do
        if first ~= without then
            local ends = ask_queue('ZSCORE', places, first)
            if ends and tonumber(ends) > self.now then return first, gone end
            self:leave(key, first)
            gone = true
        end
        first = (ask_queue('ZRANGE', queue, at, at) or {})[1]
        if not first then break end
    end
    return nil, gone
end

-- A place is given up.
function Work:leave(key, name)
    local queue, places = queue_of(key)
    local left = self.left[key] or {}
    self.left[key] = left
    if left[name] then return end
    left[name] = true
    self:write('ZREM', queue, name)
    self:write('ZREM', places, name)
end

-- How many places are taken.
function Work:places(key)
    local queue = queue_of(key)
    local taken, left = queue and ask_queue('ZCARD', queue) or 0, 0
    for _ in pairs(self.left[key] or {}) do left = left + 1 end
    return math.max(taken - left, 0)
end

-- A place is taken, or kept for longer; how many are before it, and -1 where none can be had.
function Work:stay(key, place)
    local queue, places = queue_of(key)
    local waiting = queue and ask_queue('ZCARD', queue)
    if not waiting or not ask_queue('ZCARD', places) then return -1 end
    local ends = self.now + place.ms
    local before = ask_queue('ZRANK', queue, place.name)
    if not before then
        self:write('ZADD', queue, text(self.now_us), place.name)
        before = waiting
    end
    self:write('ZADD', places, text(ends), place.name)
    for _, name in ipairs({ queue, places }) do
        local now_ends = ends_at(name)
        if not now_ends or now_ends < ends then self:expire(name, ends) end
    end
    -- Those who go in this very call were all before it.
    for _ in pairs(self.left[key] or {}) do before = before - 1 end
    return math.max(before, 0)
end

-- The same of one that may not be there. Whether it was; the next one is told when it was
-- the head.
function Work:give_up(key, name)
    local queue, places = queue_of(key)
    local has_it = queue and ask_queue('ZRANK', queue, name) and ask_queue('ZCARD', places)
    if not has_it then return false end
    local is_head = self:head(key) == name
    self:leave(key, name)
    if is_head then self:wake_place(key, name) end
    return true
end

-- Tells the head of the queue that it should try, on a channel of its own: nobody else need.
function Work:wake_place(key, without)
    local first = self:head(key, without)
    if first then
        self:publish(key, prefixed('redisson_lock__channel', key) .. ':' .. first, '0')
    end
end
