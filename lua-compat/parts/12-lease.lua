
-- The lease of an owner that holds the lock ends at this moment, in every mode.
local function set_lease(work, lock, owner, at)
    local is_plain = holds_of(lock, owner, 'exclusive')
    ends_now(lock, owner, is_plain and 'exclusive', known_of(lock, owner), at)
    if is_plain then return work:expire(lock.key, at) end
    if lock.kind == 'permits' then
        work:write('HSET', lock.key, owner, text(lock.permits[owner].holds) .. '@' .. text(at))
        -- The key stays for the owner that stays longest.
        if at > lock.ends then work:expire(lock.key, at) end
        return
    end
    local reader, ends = lock.reads[owner], at
    if reader then
        work:move_leases(lock, owner, reader.holds, at)
        reader.ends = at
    end
    if not lock.writes[owner] then
        -- The hash stays for the reader that stays longest.
        for _, other in pairs(lock.reads) do ends = math.max(ends, other.ends) end
        if ends == NEVER then ends = math.max(lock.ends, at) end
    end
    if ends ~= lock.ends then work:expire(lock.key, ends) end
end
