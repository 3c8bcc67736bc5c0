#!/bin/sh
# SPDX-License-Identifier: MIT
# title: a Lua script: strings, tables, closures
# packages: lua5.4
# lua: strings, tables and closures that come and go. One operation is one string made.
. "$(dirname "$0")/lib.sh"
needs lua5.4
cat >"$work/words.lua" <<'END'
local count = tonumber(arg[1])
local words, made = {}, 0
for i = 1, count do
    local word = "w" .. (i * i % 9973) .. ":" .. i
    words[i % 50000 + 1] = { name = word, get = function() return word end }
    made = made + (words[i % 50000 + 1].get() == word and 1 or 0)
end
print(made)
END
measured lua5.4 "$work/words.lua" 200000
says 200000
throughput 200000
