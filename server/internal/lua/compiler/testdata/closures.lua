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
return tostring(ok) .. a .. '|' .. b .. #all .. select('#', fs[1](1, nil, 3))
