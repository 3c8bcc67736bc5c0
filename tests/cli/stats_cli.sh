# SPDX-License-Identifier: MIT
# `hakmem stats`: what the library wrote is shown with units and meanings, the same from text and
# from JSON; what is no statistics is said in one line.
. "$(dirname "$0")/lib.sh"
needs sh ls sed head

# A program that allocates much, a little, and ends.
for form in text json; do
    for i in 1 2; do
        "$hakmem" run -o stats=$form -o stats_file="$work/$form.stats" ls -lR /etc \
            >/dev/null 2>&1 || :
    done
    check "$form: there are statistics" [ -s "$work/$form.stats" ]
    asked "$form" 0 stats "$work/$form.stats"
    equal "$form: both reports are shown" "$(grep -c '^process [0-9]*, 2' "$work/$form.out")" 2
    shows "$form" '^window +[0-9.]+ [KMG]iB$'
    shows "$form" '^  small_live_bytes +[0-9.]+ [KMG]?i?B +[0-9.]+ %'
    shows "$form" '^ +16 +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+$'
    shows "$form" '^refills +[0-9]+  .'
    shows "$form" 'numbers that are zero or settings; --all shows them'
    asked "all_$form" 0 stats --all "$work/$form.stats"
    shows "all_$form" '^fallback +0'
    shows "all_$form" '^waits_span +0'
done
# What both forms say of one process is the same, but for the moment.
check "text and JSON have the same names" sh -c '
    sed -n "s/^\([a-z_]*\)  .*/\1/p" "$1" | sort -u >"$1.names"
    sed -n "s/^\([a-z_]*\)  .*/\1/p" "$2" | sort -u >"$2.names"
    cmp "$1.names" "$2.names"' sh "$work/all_text.out" "$work/all_json.out"

# It begins with words.
for form in text json; do
    shows "$form" '^The program has [0-9.]+ [KM]?i?B in [0-9]+ blocks; hakmem holds [0-9.]+ [KM]iB '
    shows "$form" '^ +[0-9.]+ [KM]?i?B +[0-9.]+ %  free inside slabs$'
    shows "$form" "^ +[0-9.]+ [KM]?i?B +[0-9.]+ %  hakmem's own records\$"
    shows "$form" '^Most is held by blocks of [0-9]+ bytes \([0-9.]+ [KM]iB\), [0-9]+ bytes \('
done
cat >"$work/words" <<END
window_committed_bytes: 400000000
live_bytes: 50000000
small_live_blocks: 1000
large_live_blocks: 10
slab_free_bytes: 25000000
slab_warm_bytes: 15000000
span_warm_bytes: 75000000
span_clean_bytes: 230000000
metadata_bytes: 5000000
out_of_memory: 3
class_64_slabs: 3
class_64_live_blocks: 10
class_64_free_blocks: 1
class_128_slabs: 1
class_128_live_blocks: 100
class_16_slabs: 2
class_16_live_blocks: 1
class_8_slabs: 2
class_8_cached_blocks: 500
END
asked words 0 stats "$work/words"
shows words '^The program has 47\.7 MiB in 1010 blocks; hakmem holds 162\.1 MiB for it: 3\.40 times'
shows words '^ +85\.8 MiB +52\.9 %  free, kept for the next blocks$'
shows words '^Most .* 128 bytes \(12\.5 KiB\), 8 bytes \(3\.9 KiB\), 64 bytes \(704 B\)\.$'
shows words '^What may help: much is kept: HAKMEM_RETAIN=1M, or a shorter HAKMEM_DECAY\.$'
shows words '^Requests were refused: 3\.$'

# Numbers of ours, so that what is shown can be known.
cat >"$work/mine" <<END
pid: 17
unix_ms: 1700000000000
window_committed_bytes: 4194304
small_live_bytes: 1048576
large_live_bytes: 3145728
refills: 12
class_64_slabs: 3
class_64_live_blocks: 100
class_64_cached_blocks: 7
class_64_free_blocks: 5
waited_ns_span: 900
END
TZ=UTC
export TZ
asked mine 0 stats "$work/mine"
shows mine '^process 17, 2023-11-14 22:13:20$'
shows mine '^window +4\.0 MiB$'
shows mine '^  small_live_bytes +1\.0 MiB  25\.0 %'
shows mine '^  large_live_bytes +3\.0 MiB  75\.0 %'
shows mine '^ +64 +3 +100 +7 +5$'
shows mine '^refills +12  '
shows mine '^waited_ns_span +900 ns$'
json='{"schema":1,"version":"0","pid":18,"locks":{"span":{"waits":3}},
    "classes":[{"block_bytes":8,"slabs":2,"live_blocks":4}],"memory":{"live_bytes":-1},"x":[[],{}]}'
printf '%s\n' "$json" >"$work/own_json"
asked own_json 0 stats "$work/own_json"
shows own_json '^process 18$'
shows own_json '^waits_span +3'
shows own_json '^ +8 +2 +4 +0 +0$'
"$hakmem" stats - <"$work/mine" >"$work/input.out" || fail "from standard input"
check "standard input is read" cmp "$work/input.out" "$work/mine.out"

# What is no statistics.
refused usage 2 "usage: hakmem stats" stats
refused two 2 "usage: hakmem stats" stats a b
refused flag 2 "usage: hakmem stats" stats --wrong
refused absent 1 "no/such/file: No such file or directory" stats no/such/file
refused folder 1 "Is a directory" stats /
: >"$work/empty"
refused empty 1 "the file is empty" stats "$work/empty"
echo 'hello world' >"$work/prose"
refused prose 1 "prose: line 1 is not \`name: value\`" stats "$work/prose"
printf 'refills: 1\nflushes: x\n' >"$work/half"
asked half 1 stats "$work/half"
check "the line is named" grep -q 'half: line 2 is not' "$work/half.err"
echo 'refills: 99999999999999999999999' >"$work/large"
refused large 1 "line 1 is not" stats "$work/large"
head -c 3000 "$PRELOAD_LIB" >"$work/binary"
refused binary 1 "line 1 is not" stats "$work/binary"
printf '%s' "$json" | head -c 70 >"$work/cut"
refused cut 1 "cut: line " stats "$work/cut"
echo '{"a": 1}' >"$work/other"
refused other 1 "is JSON, but no statistics" stats "$work/other"
awk 'BEGIN { for (i = 0; i < 200000; i++) printf "["; }' >"$work/deep"
printf '{"a":%s' "$(cat "$work/deep")" >"$work/deep_json"
refused deep 1 "without end" stats "$work/deep_json"
echo '<malloc version="1">' >"$work/xml"
refused xml 1 "is XML; this command reads text and JSON" stats "$work/xml"
mkfifo "$work/pipe"
limit_s=20
refused pipe 1 "the file is empty" stats "$work/pipe"
if [ "$(id -u)" != 0 ]; then
    chmod 0 "$work/mine"
    refused denied 1 "Permission denied" stats "$work/mine"
fi
# Any piece of a report is read or refused: never more than a line, never a crash.
length=$(wc -c <"$work/json.stats")
for part in 1 2 3 5 7 11 13 17; do
    head -c $((length / part - 1)) "$work/json.stats" >"$work/piece"
    status=0
    "$hakmem" stats "$work/piece" >/dev/null 2>"$work/piece.err" || status=$?
    check "1/$part of a report: $status" [ "$status" -le 1 ]
    check "1/$part of a report says at most one line" [ "$(wc -l <"$work/piece.err")" -le 1 ]
done
