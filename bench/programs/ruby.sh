#!/bin/sh
# SPDX-License-Identifier: MIT
# title: a Ruby script: strings, arrays, hashes
# packages: ruby
# ruby: strings, arrays and hashes that come and go. One operation is one string made.
. "$(dirname "$0")/lib.sh"
needs ruby
cat >"$work/words.rb" <<'END'
count = ARGV[0].to_i
words = Hash.new { |hash, key| hash[key] = [] }
count.times { |i| words["w#{i * i % 9973}"] << "some text that is longer than a slot #{i}" }
puts words.values.sum { |found| found.map(&:upcase).sort.size }
END
measured ruby --disable=gems "$work/words.rb" 400000
says 400000
throughput 400000
