local key, limit, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local current = redis.call('INCR', key)
if current == 1 then
	redis.call('EXPIRE', key, window)
end
if current > limit then
	return {err = 'limit of ' .. limit .. ' exceeded by ' .. key}
end
return {current, limit - current, redis.call('TTL', key)}
