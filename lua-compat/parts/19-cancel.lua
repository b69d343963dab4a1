
-- CANCEL: a request is given up, and with it its place in the queue. It releases nothing.

local function cancel(work, keys, list)
    local args = arguments('RLOCK.CANCEL key owner [READ|WRITE|PERMITS] [PLACE name]', list)
    local key, owner = one_key(args, keys), args:owner()
    local options = args:keywords({
        READ = READ, WRITE = WRITE, PERMITS = PERMITS, PLACE = PLACE_NAME,
    })
    name_of(owner)
    local place = options.place
    return place and work:give_up(key, place.name) and 1 or 0
end

-- VERSION: of this library, and whether there is the module.

local function version(_, keys, list)
    arguments('rlock1_version', list):keywords({})
    if #keys > 0 then refuse('ERR rlock1_version takes no keys') end
    return VERSION
end
