
-- LIMIT: changes how many permits of a lock there are, while it is held.

local function change_limit(work, keys, list)
    local args = arguments('RLOCK.LIMIT key n', list)
    local key, limit = one_key(args, keys), args:limit()
    if args:take() then args:wrong_number() end
    local lock = work:look(key)
    if lock.kind == 'foreign' then refuse(lock.why) end
    if lock.kind == 'free' then
        refuse('NOTHELD nobody holds permits of %s: the limit comes with the next request',
            shown(key))
    elseif lock.kind ~= 'permits' then
        refuse('WRONGMODE %s is not held by permits, so it has no limit', shown(key))
    end
    local was = lock.pool.limit
    if limit ~= was then
        lock.pool.limit = limit
        work:write_pool(lock)
        if limit > was then work:wake_place(key) end
    end
    return was
end
