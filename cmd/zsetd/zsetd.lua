#!lua name=zsetd
-- The commands that only zsetd has, as functions for Redis 7 and Valkey:
--
--     FCALL zaddex 1 key EX 60 @now member
--
-- is ZADDEX key EX 60 @now member, with the same arguments, replies and
-- errors; so are zexpire, zpexpire, zexpireat, zpexpireat, zttl, zpttl,
-- zexpiretime, zpexpiretime, zpersist, zpopbyscore, zclaim and zremifeq. In zsetd
-- the functions call its commands, so that an application that uses FCALL runs on
-- both.
--
-- In Redis the deadlines of the members of a key are the scores of another sorted
-- set, zsetd:deadlines:{key}, or zsetd:deadlines:key for a key with a hash tag. It
-- lies in the same slot of a cluster, except for a key with a } and no hash tag.
-- zsetd export --for writes these sorted sets, and zsetd import reads them.
--
-- Redis removes no member at its deadline: each function that writes to a key first
-- removes the members that are due. FCALL zpurge 1 key does only that, and returns
-- their number: call it before you read the key with Redis's own commands, or
-- periodically. Those do not know the deadlines: ZADD does not clear that of a
-- member, as it does in zsetd, and RENAME does not rename the sorted set.

local own -- whether this is zsetd

local function is_zsetd()
    if own == nil then
        own = pcall(redis.acl_check_cmd, 'zremifeq', 'key', '1', 'member')
    end
    return own
end

local syntax = 'ERR syntax error'
local not_float = 'ERR value is not a valid float'
local not_integer = 'ERR value is not an integer or out of range'
local last_time = 2 ^ 46 - 1 -- of deadlines, in milliseconds

-- fail ends a function with an error of the client's.
local function fail(message)
    error({err = message})
end

local function call(...)
    local reply = redis.pcall(...)
    if type(reply) == 'table' and reply.err then
        error(reply)
    end
    return reply
end

-- The clock, in microseconds; it stands still while a function runs.
local function clock()
    local time = redis.call('TIME')
    return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Arguments are read one after the other, words in any case.

local Args = {}
Args.__index = Args

function Args:more()
    return #self - self.at + 1
end

function Args:next()
    if self.at > #self then
        fail("ERR wrong number of arguments for '" .. self.name .. "' command")
    end
    self.at = self.at + 1
    return self[self.at - 1]
end

function Args:is(word)
    if self.at <= #self and self[self.at]:upper() == word then
        self.at = self.at + 1
        return true
    end
    return false
end

function Args:integer(message)
    local s = self:next()
    local digits = s:match('^%-?([1-9]%d*)$')
    if s ~= '0' and (not digits or #digits > 19 or #digits == 19 and digits > '9223372036854775807') then
        fail(message or not_integer)
    end
    return tonumber(s)
end

function Args:positive(message)
    local n = self:integer(message)
    if n < 1 then
        fail(message)
    end
    return n
end

-- counted reads a number, and as many times width arguments, which are the rest.
function Args:counted(message, width)
    if not self:is('MEMBERS') then
        fail('ERR Mandatory argument MEMBERS is missing or not at the right position')
    end
    if self:positive(message) * width ~= self:more() then
        fail('ERR The `nummembers` parameter must match the number of arguments')
    end
    return self:rest()
end

function Args:rest()
    local rest = {}
    for i = self.at, #self do
        rest[#rest + 1] = self[i]
    end
    return rest
end

-- listed reads a number, and as many arguments, which other options may follow. before are
-- those that it has read already.
function Args:listed(before, message)
    if self:more() < 2 then
        fail('ERR MEMBERS requires at least nummembers and one member argument')
    elseif before then
        fail('ERR MEMBERS keyword specified multiple times')
    end
    local n = self:positive(message)
    if n > 2147483647 then
        fail(message)
    elseif n > self:more() then
        fail('ERR wrong number of arguments')
    end
    local list = {}
    for i = 1, n do
        list[i] = self:next()
    end
    return list
end

-- Numbers, and times of the clock.

local function number(s)
    if s == '' or s:find('[%s%z_]') then
        return nil
    end
    local n = tonumber(s)
    if n and n == n then
        return n
    end
end

local units = {ms = 1000, s = 1000000, m = 60000000, h = 3600000000, d = 86400000000}

local function duration(s, bare)
    local sum, first = 0, true
    repeat
        local n, unit, rest = s:match('^([%d.]+)(ms)(.*)$')
        if not n then
            n, unit, rest = s:match('^([%d.]+)([smhd]?)(.*)$')
        end
        n = n and tonumber(n)
        if not n or unit == '' and not (first and rest == '') then
            return nil
        end
        sum = sum + math.floor(n * (units[unit] or bare) + 0.5)
        if sum > 2 ^ 53 then
            return nil
        end
        s, first = rest, false
    until s == ''
    return sum
end

-- instant returns what @now and its like stand for; nil if s is not one. It is in
-- the unit of the word, or in whole units of so many microseconds.
local function instant(s, now, unit)
    if s:sub(1, 4):upper() ~= '@NOW' then
        return nil
    end
    local rest, bare, offset = s:sub(5), 1000000, 0
    if rest:sub(1, 2):upper() == 'MS' then
        rest, bare = rest:sub(3), 1000
    end
    if rest ~= '' then
        local sign, d = rest:match('^([+-])(.*)$')
        d = sign and duration(d, bare)
        if not d then
            return nil
        end
        offset = sign == '-' and -d or d
    end
    if unit or bare == 1000 then
        return math.floor((now + offset) / (unit or 1000))
    end
    return (now + offset) / 1000000
end

-- What is appended to an error when the argument looks like a time or a ticket.
local time_forms = ': times are @now and @nowms, perhaps with + or - and a duration, as in @now+1h30m or @nowms-500ms'
local no_ticket = ': * is a ticket, which only ZADDEX draws'
local no_increment = ': an increment is a number, not a time or a ticket'
local absolute_only = ': a duration is a number; EXPIREAT, EXAT and the like take times such as @now+1h'

local function is_time(s)
    return s:sub(1, 1) == '@'
end

local function score(s, now)
    return number(s) or instant(s, now) or fail(not_float .. (is_time(s) and time_forms or s == '*' and no_ticket or ''))
end

local function increment(s)
    return number(s) or fail(not_float .. ((is_time(s) or s == '*') and no_increment or ''))
end

-- text writes a number so that it reads back as the same.
local function text(n)
    if n == math.huge then
        return 'inf'
    elseif n == -math.huge then
        return '-inf'
    end
    return string.format('%.17g', n)
end

-- bound makes of a bound of scores one that Redis reads; nil if it is none.
local function bound(s, now)
    local open, rest = s:match('^(%(?)(.*)$')
    local n = instant(rest, now)
    if n then
        return open .. text(n)
    end
    local digits = rest:match('^[^%z]*'):match('^%s*(.*)$')
    if rest:match('^%z') or rest == '' or number(digits) then
        return s
    end
end

local function bounds(lo, hi, now)
    local first, last = bound(lo, now), bound(hi, now)
    if not first and lo:match('^%(?@') or not last and hi:match('^%(?@') then
        fail('ERR min or max is not a float' .. time_forms)
    elseif not first or not last then
        fail('ERR min or max is not a float')
    end
    return first, last
end

-- Members and their deadlines.

local function deadlines_of(key)
    local open = key:find('{', 1, true)
    local close = open and key:find('}', open + 1, true)
    if not close or close == open + 1 then
        return 'zsetd:deadlines:{' .. key .. '}'
    elseif key:match('^:*{.*}$') then -- the key {a} must not share that of the key a
        return 'zsetd:deadlines::' .. key
    end
    return 'zsetd:deadlines:' .. key
end

-- forget takes the deadlines of members away.
local function forget(set, members)
    for i = 1, #members, 1000 do
        redis.call('ZREM', set.deadlines, unpack(members, i, math.min(i + 999, #members)))
    end
end

local function remove(set, members)
    local n = 0
    for i = 1, #members, 1000 do
        n = n + redis.call('ZREM', set.key, unpack(members, i, math.min(i + 999, #members)))
    end
    forget(set, members)
    return n
end

-- view makes what the functions work with of a key that is only read.
local function view(key, now)
    local set = {key = key, deadlines = deadlines_of(key), ms = math.floor(now / 1000), now = now}
    set.size = call('ZCARD', key)
    return set
end

-- open makes it of one that is changed: without members that are due.
local function open(key, now)
    local set = view(key, now)
    set.purged = 0
    if set.size > 0 then
        local due = call('ZRANGEBYSCORE', set.deadlines, '-inf', set.ms)
        if #due > 0 then
            set.purged = remove(set, due)
            set.size = set.size - set.purged
        end
    end
    if set.size == 0 then
        redis.call('DEL', set.deadlines)
    end
    return set
end

-- deadline returns a member's, nil if it has none.
local function deadline(set, member)
    local at = redis.call('ZSCORE', set.deadlines, member)
    return at and tonumber(at)
end

-- time reads a time of a unit, and makes a deadline of it.
local function time(args, unit, now)
    local word = args[args.at] or ''
    local n, factor
    if is_time(word) then
        args.at = args.at + 1
        local at = unit.absolute and instant(word, now, 1000)
        if not at then
            fail(not_integer .. (unit.absolute and time_forms or absolute_only))
        end
        n, factor = at, 1
    else
        n, factor = args:integer(), unit.seconds and 1000 or 1
    end
    local from = unit.absolute and 0 or math.floor(now / 1000)
    if n < 0 then
        fail('ERR invalid expire time, must be >= 0')
    end
    if n > math.floor(last_time / factor) or n * factor > last_time - from then
        fail("ERR invalid expire time in '" .. args.name .. "' command")
    end
    return n * factor + from
end

local expiry = {
    EX = {seconds = true}, PX = {}, EXAT = {seconds = true, absolute = true}, PXAT = {absolute = true},
}

-- The functions. Each gets the key, what follows it, and the clock.

local functions = {}

local function zaddex_options(args, o, now)
    while args:more() > 0 do
        local word = args[args.at]:upper()
        local unit = expiry[word]
        if word == 'NX' or word == 'XX' or word == 'GT' or word == 'LT' or word == 'CH' or word == 'INCR' or word == 'ENX' then
            args.at = args.at + 1
            o[word] = true
        elseif unit or word == 'KEEPTTL' then
            args.at = args.at + 1
            if o.at or o.keep then
                fail('ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified')
            end
            if not unit then
                o.keep = true
            elseif args:more() == 0 then
                fail('ERR missing expire time')
            else
                o.at = time(args, unit, now)
            end
        elseif word == 'MAXLEN' and args:more() > 1 then
            args.at = args.at + 1
            o.most = args:positive('ERR MAXLEN must be a positive integer')
            o.high = not args:is('MIN') and args:is('MAX')
            o.reject = args:is('REJECT')
        else
            return
        end
    end
end

local function zaddex_check(o, pairs)
    if #pairs == 0 or #pairs % 2 ~= 0 then
        fail(syntax)
    elseif o.NX and o.XX then
        fail('ERR XX and NX options at the same time are not compatible')
    elseif o.NX and (o.GT or o.LT) or o.GT and o.LT then
        fail('ERR GT, LT, and/or NX options at the same time are not compatible')
    elseif o.INCR and #pairs > 2 then
        fail('ERR INCR option supports a single increment-element pair')
    elseif o.ENX and not o.at then
        fail('ERR ENX needs one of EX, PX, EXAT and PXAT')
    end
end

-- lacks_room reports whether the members that are new do not all fit in.
local function lacks_room(set, o, pairs)
    local fresh, n = {}, 0
    for i = 2, #pairs, 2 do
        local member = pairs[i]
        if not fresh[member] and not redis.call('ZSCORE', set.key, member) then
            fresh[member], n = true, n + 1
        end
    end
    return not o.XX and n > 0 and set.size + n > o.most
end

local function last_score(set)
    local last = redis.call('ZRANGE', set.key, -1, -1, 'WITHSCORES')
    return last[2] and tonumber(last[2])
end

function functions.zaddex(key, args, now)
    local o = {most = 2 ^ 63}
    local ms = math.floor(now / 1000)
    zaddex_options(args, o, now)
    local pairs = args:more() == 2 and args[args.at]:upper() ~= 'MEMBERS' and args:rest()
        or args:counted('ERR Parameter `numMembers` should be greater than 0', 2)
    zaddex_check(o, pairs)
    local scores = {}
    for i = 1, #pairs, 2 do
        if o.INCR then
            scores[i] = increment(pairs[i])
        elseif pairs[i] ~= '*' then
            scores[i] = score(pairs[i], now)
        end
    end
    local set = open(key, now)
    local full = o.reject and lacks_room(set, o, pairs)
    local added, updated, result = 0, 0, false
    for i = 1, #pairs, 2 do
        local member, new = pairs[i + 1], scores[i]
        local old = redis.call('ZSCORE', key, member)
        old = old and tonumber(old)
        if not old and not full then
            redis.call('ZREM', set.deadlines, member)
        end
        local had = old and deadline(set, member)
        if not new then -- a ticket
            if old and not o.XX then
                new = old
            else
                new = (last_score(set) or 0) + 1
            end
        end
        if not old and full then -- there is no room for it
        elseif o.at and o.at <= ms and not (o.ENX and had) then
            local to = o.INCR and old and old + new or new
            if old and not o.NX and not (o.GT and to <= old) and not (o.LT and to >= old) then
                remove(set, {member})
            end
        else
            local to = o.INCR and old and old + new or new
            local done
            if to ~= to then
                if not (o.INCR and o.NX) then
                    fail('ERR resulting score is not a number (NaN)')
                end
            elseif old then
                done = not (o.NX or o.GT and not (to > old) or o.LT and not (to < old))
            else
                done = not o.XX
            end
            if done then
                if old ~= to then
                    redis.call('ZADD', key, text(to), member)
                end
                if not old then
                    added = added + 1
                elseif old ~= to then
                    updated = updated + 1
                end
                if o.INCR then
                    result = redis.call('ZSCORE', key, member)
                end
                if o.at and not (o.ENX and had) then
                    redis.call('ZADD', set.deadlines, o.at, member)
                elseif not o.at and not o.keep and not o.INCR and had then
                    redis.call('ZREM', set.deadlines, member)
                end
            end
        end
    end
    if o.most < 2 ^ 63 and not o.reject then
        local over = redis.call('ZCARD', key) - o.most
        if over > 0 then
            if o.high then
                remove(set, redis.call('ZRANGE', key, -over, -1))
            else
                remove(set, redis.call('ZRANGE', key, 0, over - 1))
            end
        end
    end
    if full then
        return false
    elseif o.INCR then
        return result
    elseif o.CH then
        return added + updated
    end
    return added
end

local function expire(unit)
    return function(key, args, now)
        local set = open(key, now)
        local at = time(args, unit, now)
        local condition, several, members
        while args:more() > 0 do
            local word = args:next()
            local name = word:upper()
            if name == 'MEMBERS' then
                members = args:listed(members, 'ERR Parameter `numMembers` should be greater than 0')
            elseif name == 'NX' or name == 'XX' or name == 'GT' or name == 'LT' then
                several = several or condition and condition ~= name
                condition = name
            else
                fail('ERR unknown argument: ' .. word:match('^[^%z]*'):gsub('[\r\n]+$', ''))
            end
        end
        if not members then
            fail('ERR missing MEMBERS argument')
        elseif several then
            fail('ERR Multiple condition flags specified')
        end
        local nx, xx, gt, lt = condition == 'NX', condition == 'XX', condition == 'GT', condition == 'LT'
        local replies = {}
        for i, member in ipairs(members) do
            local there = redis.call('ZSCORE', key, member)
            local had = there and deadline(set, member)
            if not there then
                replies[i] = -2
            elseif nx and had or xx and not had or gt and not (had and at > had) or lt and had and at >= had then
                replies[i] = 0
            elseif at <= set.ms then
                remove(set, {member})
                replies[i] = 2
            else
                redis.call('ZADD', set.deadlines, at, member)
                replies[i] = 1
            end
        end
        return replies
    end
end

functions.zexpire = expire(expiry.EX)
functions.zpexpire = expire(expiry.PX)
functions.zexpireat = expire(expiry.EXAT)
functions.zpexpireat = expire(expiry.PXAT)

local function ttl(unit)
    return function(key, args, now)
        local set = view(key, now)
        local replies = {}
        for i, member in ipairs(args:counted('ERR Number of members must be a positive integer', 1)) do
            local there = redis.call('ZSCORE', key, member)
            local at = there and deadline(set, member)
            if not there or at and at <= set.ms then
                replies[i] = -2
            elseif not at then
                replies[i] = -1
            else
                if not unit.absolute then
                    at = at - set.ms
                end
                if unit.seconds then
                    at = math.ceil(at / 1000)
                end
                replies[i] = at
            end
        end
        return replies
    end
end

functions.zttl = ttl(expiry.EX)
functions.zpttl = ttl(expiry.PX)
functions.zexpiretime = ttl(expiry.EXAT)
functions.zpexpiretime = ttl(expiry.PXAT)

function functions.zpersist(key, args, now)
    local set = open(key, now)
    local replies = {}
    for i, member in ipairs(args:counted('ERR Number of members must be a positive integer', 1)) do
        if not redis.call('ZSCORE', key, member) then
            replies[i] = -2
        elseif redis.call('ZREM', set.deadlines, member) == 1 then
            replies[i] = 1
        else
            replies[i] = -1
        end
    end
    return replies
end

-- take reads the options of zpopbyscore and zclaim behind the bounds.
local function take_options(args, words)
    local o = {count = 1}
    while args:more() > 0 do
        local word = args[args.at]:upper()
        if words[word] and not o[word] then
            args.at = args.at + 1
            o[word] = true
        elseif word == 'COUNT' and not o.many and args:more() > 1 then
            args.at = args.at + 1
            o.many = true
            o.count = args:positive('ERR count should be greater than 0')
        else
            fail(syntax)
        end
    end
    return o
end

-- in_range returns members and scores within bounds.
local function in_range(set, lo, hi, o)
    if o.MAX then
        return call('ZREVRANGEBYSCORE', set.key, hi, lo, 'WITHSCORES', 'LIMIT', 0, o.count)
    end
    return call('ZRANGEBYSCORE', set.key, lo, hi, 'WITHSCORES', 'LIMIT', 0, o.count)
end

function functions.zpopbyscore(key, args, now)
    local lo, hi = args:next(), args:next()
    local o = take_options(args, {MAX = true})
    lo, hi = bounds(lo, hi, now)
    local taken = in_range(open(key, now), lo, hi, o)
    local members = {}
    for i = 1, #taken, 2 do
        members[#members + 1] = taken[i]
    end
    remove({key = key, deadlines = deadlines_of(key)}, members)
    return taken
end

function functions.zclaim(key, args, now)
    local lo, hi, new = args:next(), args:next(), args:next()
    local o = take_options(args, {LEASE = true})
    lo, hi = bounds(lo, hi, now)
    new = score(new, now)
    local taken = in_range(open(key, now), lo, hi, o)
    for i = 1, #taken, 2 do
        redis.call('ZADD', key, text(new), taken[i])
        if o.LEASE then
            taken[i + 1] = redis.call('ZSCORE', key, taken[i])
        end
    end
    return taken
end

function functions.zremifeq(key, args, now)
    if args:more() % 2 ~= 0 then
        fail(syntax)
    end
    local scores = {}
    for i = 1, #args, 2 do
        scores[i] = score(args[i], now)
    end
    local set = open(key, now)
    local removed = 0
    for i = 1, #args, 2 do
        local old = redis.call('ZSCORE', key, args[i + 1])
        if old and tonumber(old) == scores[i] then
            removed = removed + remove(set, {args[i + 1]})
        end
    end
    return removed
end

function functions.zpurge(key, args, now)
    return open(key, now).purged
end

-- How many arguments each needs besides its name.
local arity = {
    zaddex = 3, zexpire = 5, zpexpire = 5, zexpireat = 5, zpexpireat = 5, zttl = 4, zpttl = 4, zexpiretime = 4, zpexpiretime = 4,
    zpersist = 4, zpopbyscore = 3, zclaim = 4, zremifeq = 3, zpurge = 1,
}

local reads = {zttl = true, zpttl = true, zexpiretime = true, zpexpiretime = true}

-- There is no pairs while a library is loaded.
local names = {
    'zaddex', 'zexpire', 'zpexpire', 'zexpireat', 'zpexpireat', 'zttl', 'zpttl', 'zexpiretime', 'zpexpiretime',
    'zpersist', 'zpopbyscore', 'zclaim', 'zremifeq', 'zpurge',
}

for i = 1, #names do
    local name = names[i]
    local f = functions[name]
    redis.register_function{
        function_name = name,
        flags = reads[name] and {'no-writes'} or {},
        callback = function(keys, args)
            if #keys ~= 1 or #keys + #args < arity[name] then
                return {err = "ERR wrong number of arguments for '" .. name .. "' command"}
            end
            if is_zsetd() then
                if name == 'zpurge' then
                    return 0 -- what is due is gone
                end
                return redis.pcall(name, keys[1], unpack(args))
            end
            args.at, args.name = 1, name
            local ok, reply = pcall(f, keys[1], setmetatable(args, Args), clock())
            if not ok then
                return {err = reply}
            end
            return reply
        end,
    }
end
