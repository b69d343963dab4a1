
-- THE FUNCTIONS, with what they do, what the server lets them do, and whether they
-- take memory, for which the module's commands are refused when there is none.

local FUNCTIONS = {
    rlock1_acquire = { act = acquire, short = acquire_free, takes_memory = true },
    rlock1_release = { act = release, short = release_last },
    rlock1_renew = { act = renew },
    rlock1_macquire = { act = acquire_many, takes_memory = true },
    rlock1_mrelease = { act = release_many },
    rlock1_mrenew = { act = renew_many },
    rlock1_force = { act = force },
    rlock1_limit = { act = change_limit, takes_memory = true },
    rlock1_cancel = { act = cancel },
    rlock1_info = { act = info, flags = { 'no-writes', 'allow-oom' } },
    rlock1_version = { act = version, flags = { 'no-writes', 'allow-oom' } },
}

local function call(name, keys, args)
    local one, work = FUNCTIONS[name], nil
    local has_module = is_module_there()
    -- A script keeps a counter for each lock, and has no memory: it goes the long way.
    local short = IS_LIBRARY and not has_module and one.short and args[1] and keys[1] and
        one.short(keys, args)
    if short then return short end
    keys = locks_among(keys)
    if has_module then return ask_module(name:sub(#'rlock1_' + 1), keys, args) end
    local fine, reply = pcall(function()
        work = begin()
        return one.act(work, keys, args)
    end)
    if not fine then
        local raised = type(reply) == 'table' and reply
        if raised and raised.fault then return redis.error_reply(raised.fault) end
        if not raised or not raised.refusal then error(reply, 0) end
        reply = redis.error_reply(raised.refusal)
    end
    return work:carry_out(keys[1], one.takes_memory) or reply
end

if IS_LIBRARY then
    -- One by one: while a library is loaded there is no `pairs`.
    local function register(name)
        local one = FUNCTIONS[name]
        redis.register_function({
            function_name = name,
            callback = function(keys, args) return call(name, keys, args) end,
            flags = one.flags or (one.takes_memory and {} or { 'allow-oom' }),
        })
    end
    register('rlock1_acquire')
    register('rlock1_release')
    register('rlock1_renew')
    register('rlock1_macquire')
    register('rlock1_mrelease')
    register('rlock1_mrenew')
    register('rlock1_force')
    register('rlock1_limit')
    register('rlock1_cancel')
    register('rlock1_info')
    register('rlock1_version')
    return
end

-- Where the script runs in a cluster, CLUSTER stands before the name.
local at = cluster and 2 or 1
local name = ARGV[at]
if not FUNCTIONS[name] then
    return redis.error_reply('ERR the first argument must name a function, such as rlock1_acquire')
end
local rest = {}
for following = at + 1, #ARGV do rest[following - at] = ARGV[following] end
return call(name, KEYS, rest)
