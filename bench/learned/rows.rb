# SPDX-License-Identifier: MIT
# A web service's memory: requests build rows of strings and drop them, a cache keeps one in 200.
# `rows.rb SEED`, about three seconds.
random = Random.new(Integer(ARGV.fetch(0)))
cache = {}
14.times do |burst|
  rows = Array.new(60_000) { |i| { id: i, text: "x" * (24 + random.rand(400)) } }
  rows.each_with_index { |row, i| cache[burst * 1000 + i / 200] = row if (i % 200).zero? }
  rows = nil
  GC.start
  sleep 0.15
end
puts cache.size
