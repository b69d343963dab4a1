
-- THE SHORT WAY of what most calls are: a plain lock that is free, with nothing else under its
-- names, and its release by who alone has it. It does what the long way would, in a third of
-- the time; nil: it is something else, and the long way decides. Here each call of the server's
-- counts: the first write is not asked for before, for if it is refused nothing has changed.

-- Whether these are the arguments that clients say when they first try.
local function is_first_try(list)
    local number = #list
    if number == 2 then return true end
    if list[3] ~= 'ONCE' then return false end
    return number == 3 or number == 6 and list[4] == 'PLACE' and list[6] == '0' and
        #list[5] >= 1 and #list[5] <= LONGEST_PLACE
end

local function is_lawful(owner)
    return #owner <= LONGEST_OWNER and is_owner(owner) and owner ~= '*'
end

-- Behind the lock stand none but its own names.
local function is_declared(keys, counter, queue, places)
    for at = 2, #keys do
        local key = keys[at]
        if key ~= queue and key ~= places and key ~= counter then return false end
    end
    return true
end

local function acquire_free(keys, list)
    local key, owner, lease = keys[1], list[1], list[2] and number(list[2], 1)
    local of = stem_of(key)
    if not lease or not of.is_whole or not is_first_try(list) or not is_lawful(owner) then
        return nil
    end
    local counter, queue = 'redisson_lock_token:' .. of.name, 'rlock1_queue:' .. of.name
    if not is_declared(keys, counter, queue, 'rlock1_places:' .. of.name) or
        some_are_ahead and recall(key, AHEAD) or
        redis.pcall('EXISTS', key, counter, queue) ~= 0 then
        return nil
    end
    local time = redis.pcall('TIME')
    if time.err then return nil end
    local us = time[1] * 1000000 + time[2]
    local ends, token = (us - us % 1000) / 1000 + lease, us > last and us or last + 1
    if token > MOST_MS or not redis.acl_check_cmd('PEXPIREAT', key, '1') or
        redis.pcall('HSET', key, owner, '1') ~= 1 then
        return nil
    end
    redis.call('PEXPIREAT', key, ends)
    last = token
    remember_plain(key, owner, ends, token, us)
    return token
end

-- Of a hold that the library does not know the hash may be large.
local function release_last(keys, list)
    local key, owner, number = keys[1], list[1], #list
    if number ~= 1 and not (number == 2 and list[2] == 'IFHELD') or
        not is_known_plain(key, owner) or cluster == nil then
        return nil
    end
    local name = stem_of(key).name
    local queue = 'rlock1_queue:' .. name
    if not stem.is_whole or
        not is_declared(keys, 'redisson_lock_token:' .. name, queue, 'rlock1_places:' .. name) then
        return nil
    end
    local fields, left = redis.pcall('HGETALL', key), redis.pcall('PTTL', key)
    if fields[1] ~= owner or fields[2] ~= '1' or fields[3] or type(left) ~= 'number' or
        left < 0 or redis.pcall('EXISTS', queue, 'redisson_lock_queue:' .. name) ~= 0 then
        return nil
    end
    local channel = 'redisson_lock__channel:' .. name
    local publish = cluster and 'SPUBLISH' or 'PUBLISH'
    if not redis.acl_check_cmd(publish, channel, '0') or redis.pcall('DEL', key) ~= 1 then
        return nil
    end
    redis.call(publish, channel, '0')
    forget(key, PLAIN)
    return 0
end
