
-- THE FUNCTIONS, with what they do, what the server lets them do, and whether they
-- take memory, for which the module's commands are refused when there is none.

local FUNCTIONS = {
    rlock_acquire = { act = acquire, takes_memory = true },
    rlock_release = { act = release },
    rlock_renew = { act = renew },
    rlock_macquire = { act = acquire_many, takes_memory = true },
    rlock_mrelease = { act = release_many },
    rlock_mrenew = { act = renew_many },
    rlock_force = { act = force },
    rlock_limit = { act = change_limit, takes_memory = true },
    rlock_info = { act = info, flags = { 'no-writes', 'allow-oom' } },
}

local function call(one, keys, args)
    local work
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
            callback = function(keys, args) return call(one, keys, args) end,
            flags = one.flags or (one.takes_memory and {} or { 'allow-oom' }),
        })
    end
    register('rlock_acquire')
    register('rlock_release')
    register('rlock_renew')
    register('rlock_macquire')
    register('rlock_mrelease')
    register('rlock_mrenew')
    register('rlock_force')
    register('rlock_limit')
    register('rlock_info')
    return
end

local one = FUNCTIONS[ARGV[1]]
if not one then
    return redis.error_reply('ERR the first argument must name a function, such as rlock_acquire')
end
local rest = {}
for at = 2, #ARGV do rest[at - 1] = ARGV[at] end
return call(one, KEYS, rest)
