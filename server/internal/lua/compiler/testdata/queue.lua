local ready, jobs = KEYS[1], {}
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for i, id in ipairs(due) do
	local key = KEYS[3] .. ':' .. id
	local job = redis.call('HGETALL', key)
	local fields = {}
	for j = 1, #job, 2 do
		fields[job[j]] = job[j + 1]
	end
	if fields.state ~= 'paused' and not fields.cancelled or fields.force == '1' then
		redis.call('RPUSH', ready, cjson.encode({id = id, attempts = (tonumber(fields.attempts) or 0) + 1, data = fields.data}))
		jobs[#jobs + 1] = id
	else
		redis.log(redis.LOG_NOTICE, 'skipped ' .. id .. ' because of ' .. (fields.state or 'nothing') .. ' at ' .. ARGV[1])
	end
end
if #jobs > 0 then redis.call('ZREM', KEYS[2], unpack(jobs)) end
return jobs
