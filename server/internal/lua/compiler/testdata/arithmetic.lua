local s = 0 for i = 1, 100 do s = s + i * 2 - i / 3 if i % 5 == 0 then s = -s end end return s
