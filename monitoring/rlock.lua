-- For redis_exporter (--script rlock.lua): each number of INFO rlock becomes
-- redis_script_values{key="rlock_held"} and so on. The user that the exporter logs in with needs
-- +info and +eval.
local fields = {}
for name, value in string.gmatch(redis.call('INFO', 'rlock'), '(rlock_[%w_]+):(%d+)\r\n') do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
end
return fields
