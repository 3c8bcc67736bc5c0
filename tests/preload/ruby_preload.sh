# SPDX-License-Identifier: MIT
# ruby: strings, hashes, threads, the garbage collector and its compaction, a forked child. Ruby
# takes each object's body from malloc. If this fails, a Rails server does not run.
. "$(dirname "$0")/lib.sh"
needs ruby

cat >"$work/program.rb" <<'END'
require 'json'
require 'digest'
require 'zlib'

words = (1..60_000).map { |n| "word#{n * 7919 % 10_007}" }
p words.group_by(&:size).map { |size, group| [size, group.uniq.size] }.sort
text = JSON.generate(words.each_slice(100).map { |slice| { 'words' => slice, 'n' => slice.size } })
puts Digest::SHA256.hexdigest(JSON.generate(JSON.parse(text)))
puts Zlib.crc32(Zlib::Inflate.inflate(Zlib::Deflate.deflate(text)))
puts text.gsub(/word(\d)/) { "w#{$1.to_i + 1}" }.scan(/w10/).size
threads = (1..6).map do |n|
  Thread.new { (1..3_000).map { |i| 'x' * (i * n % 500) }.sum(&:size) }
end
p threads.map(&:value)
GC.start
GC.compact if GC.respond_to?(:compact)
reader, writer = IO.pipe
child = fork { writer.puts((1..20_000).map(&:to_s).join.size) }
Process.wait(child)
puts reader.gets
puts $?.exitstatus
END
well ruby ruby "$work/program.rb"
check "the child came to hakmem, too" [ "$(reports ruby)" -ge 2 ]
