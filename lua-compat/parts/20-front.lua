
-- THE FRONT of the module: where it is loaded it decides, so that there is one order of
-- waiters and of tokens.

-- Redis before 7.0 cannot be asked, and loads no rlock.
local function is_module_there()
    if not redis.acl_check_cmd then return false end
    return (pcall(redis.acl_check_cmd, 'RLOCK.ACQUIRE', 'key', 'owner', '1'))
end

-- The arguments without PLACE, which the module does not know; whether it was there.
local function without_place(list, from, words)
    local rest, has_place, at = {}, false, 1
    while at <= #list do
        if at >= from and list[at]:upper() == 'PLACE' then
            has_place, at = true, at + words
        else
            table.insert(rest, list[at])
            at = at + 1
        end
    end
    return rest, has_place
end

-- A reply's pairs as maps, as INFO makes them.
local function maps(reply)
    for at = 2, #reply, 2 do
        local value = reply[at]
        if type(value) == 'table' then
            for each, entry in ipairs(value) do
                if type(entry) == 'table' then value[each] = map(entry) end
            end
        end
    end
    return map(reply)
end

-- What the module replies to a call of the function of this name.
local function ask_module(name, keys, list)
    if name == 'version' then return VERSION .. ' module' end
    local takes_many = name:sub(1, 1) == 'm'
    local waits = name == 'acquire' or name == 'macquire'
    local rest, has_place = list, false
    if waits then rest, has_place = without_place(list, 3, 3) end
    if name == 'cancel' then rest = without_place(list, 2, 2) end
    local command = { 'RLOCK.' .. name:upper() }
    if takes_many then table.insert(command, tostring(#keys)) end
    for _, words in ipairs({ keys, rest }) do
        for _, word in ipairs(words) do table.insert(command, word) end
    end
    local reply = redis.pcall(unpack(command))
    if name == 'info' and type(reply) == 'table' and not reply.err then return maps(reply) end
    if reply == false and has_place then
        local left = redis.pcall('PTTL', keys[1])
        return { type(left) == 'number' and left >= 0 and left + 1 or -1, -1 }
    end
    return reply
end
