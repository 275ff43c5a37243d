package script

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// sample is a script of a usual kind.
type sample struct{ name, source string }

func samples() []sample {
	return []sample{
		{"get", "return redis.call('GET', KEYS[1])"},
		{"lock", `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`},
		{"limiter", `
local key, limit, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local current = redis.call('INCR', key)
if current == 1 then
	redis.call('EXPIRE', key, window)
end
if current > limit then
	return {err = 'limit of ' .. limit .. ' exceeded by ' .. key}
end
return {current, limit - current, redis.call('TTL', key)}`},
		{"bucket", `
local rate, capacity, now, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local fill_time = capacity / rate
local ttl = math.floor(fill_time * 2)
local last_tokens = tonumber(redis.call("get", KEYS[1]))
if last_tokens == nil then
	last_tokens = capacity
end
local last_refreshed = tonumber(redis.call("get", KEYS[2]))
if last_refreshed == nil then
	last_refreshed = 0
end
local delta = math.max(0, now - last_refreshed)
local filled_tokens = math.min(capacity, last_tokens + (delta * rate))
local allowed = filled_tokens >= requested
local new_tokens = filled_tokens
if allowed then
	new_tokens = filled_tokens - requested
end
redis.call("setex", KEYS[1], ttl, new_tokens)
redis.call("setex", KEYS[2], ttl, now)
return { allowed, new_tokens }`},
		{"queue", `
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
return jobs`},
		{"closures", `
local function map(t, f) local r = {} for i, v in ipairs(t) do r[i] = f(v, i) end return r end
local counter = 0
local fs = {}
for i = 1, 10 do
	fs[i] = function(...) counter = counter + i return counter, ... end
end
local Point = {}
Point.__index = Point
function Point.new(x, y) return setmetatable({x = x, y = y}, Point) end
function Point:add(o) return Point.new(self.x + o.x, self.y + o.y) end
local p = Point.new(1, 2):add(Point.new(3, 4))
local a, b = p.x, p.y
a, b = b, a
local all = map({1, 2, 3}, function(v, i) return v * i % 7 end)
local ok = a == 6 and b == 4 and not (counter > 0) or nil
repeat local z = a - 1; a = z until z < 0
while true do if a > 5 then break elseif a < -5 then return nil else a = a + 1 end end
return tostring(ok) .. a .. '|' .. b .. #all .. select('#', fs[1](1, nil, 3))`},
		{"arithmetic", "local s = 0 for i = 1, 100 do s = s + i * 2 - i / 3 if i % 5 == 0 then s = -s end end return s"},
		{"calls", strings.Repeat("redis.call('set', KEYS[1], ARGV[1])\n", 10)},
	}
}

// size returns the number of instructions of a function and those within.
func size(p *lua.FunctionProto) int {
	n := len(p.Code)
	for _, inner := range p.FunctionPrototypes {
		n += size(inner)
	}
	return n
}

func BenchmarkCompile(b *testing.B) {
	st := machine()
	for _, s := range samples() {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := st.Compile(s.source, "user_script"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRun runs compiled scripts that call no command.
func BenchmarkRun(b *testing.B) {
	for _, s := range samples() {
		if strings.Contains(s.source, "redis.") {
			continue
		}
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			st := machine()
			fn, err := st.Compile(s.source, "user_script")
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				if _, failed := st.Call(fn); failed != nil {
					b.Fatal(display(failed.Value))
				}
			}
		})
	}
}
