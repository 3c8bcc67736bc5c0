# SPDX-License-Identifier: MIT
# lua reallocates everything: each block of its heap goes through realloc, whose size 0 is free. If
# this fails, the many programs that carry a Lua do not run.
. "$(dirname "$0")/lib.sh"
needs lua5.4

cat >"$work/program.lua" <<'END'
local list = {}
for i = 1, 100000 do list[i] = ("x"):rep(i * 7919 % 97) .. i end
table.sort(list)
print(#list, list[1], list[50000], #table.concat(list))
local count = {}
for _, word in ipairs(list) do count[#word] = (count[#word] or 0) + 1 end
for i = 1, 100 do io.write(count[i] or 0, " ") end
print()
for round = 1, 20 do
    local tree
    for i = 1, 5000 do tree = { left = tree, value = i, name = "n" .. i % 100 } end
    if round % 5 == 0 then collectgarbage() end
end
collectgarbage("generational")
local threads = {}
for i = 1, 1000 do
    threads[i] = coroutine.wrap(function()
        local sum = 0
        while true do sum = sum + coroutine.yield(sum) end
    end)
    threads[i]()
end
local sum = 0
for i = 1, 1000 do sum = sum + threads[i](i) end
print(sum, select(2, pcall(string.rep, "x", 1 << 46)))
END
well lua lua5.4 "$work/program.lua"
