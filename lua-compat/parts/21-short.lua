
-- THE SHORT WAY of what most calls are: a plain lock that is free, with nothing else under its
-- names, and its release by who alone has it. It does what the long way would, in a third of
-- the time; nil: it is something else, and the long way decides.

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

local function acquire_free(key, list)
    local owner, lease = list[1], list[2] and number(list[2], 1)
    if not lease or not is_first_try(list) or not is_lawful(owner) then return nil end
    local counter, queue = prefixed('redisson_lock_token', key), prefixed('rlock1_queue', key)
    if redis.pcall('EXISTS', key, counter, queue) ~= 0 or recall(key, AHEAD) then return nil end
    local time = redis.pcall('TIME')
    if time.err then return nil end
    local us = time[1] * 1000000 + time[2]
    local ends, token = math.floor(us / 1000) + lease, math.max(last + 1, us)
    local upto = text(ends)
    if token > MOST_MS or not redis.acl_check_cmd('HSET', key, owner, '1') or
        not redis.acl_check_cmd('PEXPIREAT', key, upto) then
        return nil
    end
    last = token
    redis.call('HSET', key, owner, '1')
    redis.call('PEXPIREAT', key, upto)
    remember_plain(key, owner, ends)
    remember(key, owner, { token = token, since = us, ends = ends })
    return token
end

local function release_last(key, list)
    local owner = list[1]
    if #list ~= 1 and not (#list == 2 and list[2] == 'IFHELD') or not is_lawful(owner) then
        return nil
    end
    if redis.pcall('HLEN', key) ~= 1 or redis.pcall('HGET', key, owner) ~= '1' then return nil end
    local left = redis.pcall('PTTL', key)
    local queue, fair = prefixed('rlock1_queue', key), prefixed('redisson_lock_queue', key)
    if type(left) ~= 'number' or left < 0 or redis.pcall('EXISTS', queue, fair) ~= 0 then
        return nil
    end
    local channel = prefixed('redisson_lock__channel', key)
    local publish = in_cluster() and 'SPUBLISH' or 'PUBLISH'
    if not redis.acl_check_cmd('DEL', key) or not redis.acl_check_cmd(publish, channel, '0') then
        return nil
    end
    forget(key, owner)
    forget(key, PLAIN)
    redis.call('DEL', key)
    redis.call(publish, channel, '0')
    return 0
end

-- A script keeps a counter for each lock, and has no memory: it goes the long way.
local function short_way(name, keys, list)
    if not IS_LIBRARY or #keys ~= 1 or not stem_of(keys[1]).is_whole then return nil end
    if name == 'rlock1_acquire' then return acquire_free(keys[1], list) end
    if name == 'rlock1_release' and list[1] then return release_last(keys[1], list) end
end
