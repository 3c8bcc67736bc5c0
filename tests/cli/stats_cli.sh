# SPDX-License-Identifier: MIT
# `hakmem stats`: what the library wrote, in whatever form, is shown in the words of the text form;
# what is no statistics, or cut, is said in one line.
. "$(dirname "$0")/lib.sh"
needs sh ls sed head tail grep

forms="text raw json xml openmetrics"
# A program that allocates much, a little, and ends.
for form in $forms; do
    for i in 1 2; do
        "$hakmem" run -o stats=$form -o stats_file="$work/$form.stats" ls -lR /etc \
            >/dev/null 2>&1 || :
    done
    check "$form: there are statistics" [ -s "$work/$form.stats" ]
    asked "$form" 0 stats "$work/$form.stats"
    equal "$form: both reports are shown" "$(grep -c '^hakmem statistics' "$work/$form.out")" 2
    shows "$form" '^resident +[0-9.]+ [KM]iB  the process, [0-9.]+ [KM]iB of it hakmem.s; peak '
    shows "$form" '^held +[0-9.]+ [KM]iB  by hakmem'
    shows "$form" '^  live +[0-9.]+ [KM]?i?B +[0-9.]+ %  [0-9]+ blocks of the program$'
    shows "$form" "^  records +[0-9.]+ [KM]?i?B +[0-9.]+ %  hakmem's own\$"
    shows "$form" '^fragmentation +[0-9]+\.[0-9][0-9]  '
    shows "$form" '^largest +[0-9.]+ [KM]iB  in blocks of [0-9]+ bytes, '
    shows "$form" '^rseq +(processor|thread): .'
    shows "$form" '^advice +.'
    shows "$form" '^ +16 +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9.]+ KiB$'
    shows "$form" '^(processor|thread) [0-9]+ +[0-9.]+ [KM]?i?B +[0-9.]+ [KM]?i?B +[0-9]+$'
    shows "$form" '^heap 1 +[0-9.]+ [KM]iB +[0-9.]+ [KM]?i?B +[0-9]+ +[0-9]+$'
    shows "$form" '^refills +[0-9]+  .'
    shows "$form" '^Not shown: [0-9]+ zeros, and the policy'
    check "$form: no line is too long" [ -z "$(awk 'length > 79' "$work/$form.out")" ]
    [ $form = text ] && continue
    asked "all_$form" 0 stats --all "$work/$form.stats"
    shows "all_$form" '^fallback +0'
    shows "all_$form" '^waits_span +0'
    shows "all_$form" '^decay_ms +125 ms'
    shows "all_$form" '^Not shown: 0 numbers\.$'
    check "$form: no line is too long" [ -z "$(awk 'length > 79' "$work/all_$form.out")" ]
done
# A time that never comes is no large number.
for form in raw json xml openmetrics; do
    HAKMEM_DECAY=never HAKMEM_STATS=$form HAKMEM_STATS_FILE="$work/never.$form" \
        LD_PRELOAD="$PRELOAD_LIB" ls / >/dev/null
    check "$form: no such number" sh -c '! grep -q 4611686018427387903 "$1"' sh "$work/never.$form"
    check "$form: it is -1" grep -q -e '-1' "$work/never.$form"
    asked "never_$form" 0 stats --all "$work/never.$form"
    for name in span_keep_ms pool_keep_ms decay_ms; do
        shows "never_$form" "^$name +never  "
    done
done
grep . "$work/text.stats" >"$work/text.lines"
check "text is shown as it is" sh -c 'grep . "$1" | cmp - "$2"' sh "$work/text.out" \
    "$work/text.lines"
summary() { sed -n '1,/^advice/p' "$work/$1.out" | grep -cv '^  '; }
check "it begins with some ten lines: $(summary json)" [ "$(summary json)" -le 20 ]

# Numbers of ours, so that what is shown can be known.
# rows NAME: standard input as a report in raw form.
rows() {
    cat >"$work/$1"
    echo "rows: $(wc -l <"$work/$1")" >>"$work/$1"
}
rows words <<END
pid: 17
unix_ms: 1700000000000
window_committed_bytes: 400000000
live_bytes: 50000000
small_live_blocks: 1000
large_live_blocks: 10
slab_free_bytes: 25000000
slab_warm_bytes: 15000000
span_warm_bytes: 75000000
span_clean_bytes: 230000000
metadata_bytes: 5000000
resident_bytes: 250000000
resident_peak_bytes: 300000000
own_resident_bytes: 200000000
out_of_memory: 3
rseq_reason: 1
refills: 12
waited_ns_span: 900
policy_decay_ms: 1000
policy_free_policy: 2
class_64_slabs: 3
class_64_live_blocks: 10
class_64_cached_blocks: 7
class_64_free_blocks: 1
class_128_slabs: 1
class_128_live_blocks: 100
class_16_slabs: 2
class_16_live_blocks: 1
class_8_slabs: 2
class_8_cached_blocks: 500
processor_1_bytes: 2048
processor_1_misses: 9
heap_2_lock_waits: 8
of_tomorrow: 21
END
asked words 0 stats "$work/words"
equal "the head" "$(head -n 1 "$work/words.out")" \
    "hakmem statistics, process 17, 2023-11-14 22:13:20 UTC"
shows words '^resident +238\.4 MiB  the process, 190\.7 MiB of it hakmem.s; peak 286\.1 MiB$'
shows words '^held +162\.1 MiB  by hakmem'
shows words '^  live +47\.7 MiB +29\.4 %  1010 blocks of the program$'
shows words '^  kept +85\.8 MiB +52\.9 %  free, resident, kept for reuse$'
shows words '^fragmentation +4\.00  resident bytes of hakmem for each live byte$'
shows words '^largest +12\.5 KiB  in blocks of 128 bytes, 3\.9 KiB of 8,$'
shows words '^ +1\.1 KiB of 64$'
shows words '^rseq +thread: option caches=thread$'
shows words '^refused +3  requests'
shows words '^advice +HAKMEM_DECAY=125ms: '
shows words '^ +64 +3 +10 +7 +1 +1\.1 KiB$'
shows words '^processor 1 +2\.0 KiB +0 B +9$'
shows words '^heap 2 +0 B +0 B +8 +0$'
shows words '^refills +12  '
shows words '^waited_ns_span +900 ns'
shows words '^of_tomorrow +21$'
json='{"schema":1,"version":"0","pid":18,"locks":{"span":{"waits":3}},
    "classes":[{"block_bytes":8,"slabs":2,"live_blocks":4}],"memory":{"live_bytes":-1},"x":[[],{}]}'
printf '%s\n' "$json" >"$work/own_json"
asked own_json 0 stats "$work/own_json"
shows own_json '^hakmem statistics, process 18$'
shows own_json '^waits_span +3'
shows own_json '^ +8 +2 +4 +0 +0 '
"$hakmem" stats - <"$work/words" >"$work/input.out" || fail "from standard input"
check "standard input is read" cmp "$work/input.out" "$work/words.out"
"$hakmem" stats - <"$work/own_json.out" >"$work/again.out" || fail "from the command's own output"
check "what the command prints it reads" cmp "$work/again.out" "$work/own_json.out"
cat "$work/json.stats" "$work/words" "$work/xml.stats" "$work/text.stats" \
    "$work/openmetrics.stats" >"$work/mixed"
asked mixed 0 stats "$work/mixed"
equal "forms may follow one another" "$(grep -c '^hakmem statistics' "$work/mixed.out")" 9

asked all_before 0 stats --all "$work/words"
asked all_behind 0 stats "$work/words" --all
check "an option may follow the file" cmp "$work/all_before.out" "$work/all_behind.out"

# What is no statistics.
refused usage 2 "usage: hakmem stats" stats
refused two 2 "stats: unexpected argument 'b'" stats a b
refused flag 2 "stats: there is no option '--wrong'" stats --wrong
refused absent 1 "no/such/file: No such file or directory" stats no/such/file
refused folder 1 "Is a directory" stats /
: >"$work/empty"
refused empty 1 "the file is empty" stats "$work/empty"
echo 'hello world' >"$work/prose"
refused prose 1 "prose: line 1 is not \`name: value\`" stats "$work/prose"
printf 'refills: 1\nflushes: x\n' >"$work/half"
refused half 1 "half: line 2 is not" stats "$work/half"
printf 'refills: 1\nflushes: 1\nrows: 3\n' >"$work/few"
refused few 1 "few: line 4 comes after a report that lacks rows" stats "$work/few"
echo 'refills: 99999999999999999999999' >"$work/large"
refused large 1 "line 1 is not" stats "$work/large"
head -c 3000 "$PRELOAD_LIB" >"$work/binary"
refused binary 1 "line 1 is not" stats "$work/binary"
printf '%s' "$json" | head -c 70 >"$work/cut"
refused cut 1 "cut: line " stats "$work/cut"
echo '{"a": 1}' >"$work/other"
refused other 1 "is JSON, but not statistics" stats "$work/other"
echo '{"schema":1,"pid":1,"live_bytes":9,"sites":[{"live_bytes":9,"stack":[]}]}' >"$work/profile"
refused profile 1 "a heap profile, not statistics: hakmem profile shows it" stats "$work/profile"
echo '{"schema":1,"pid":1,"refills":9}' >"$work/no_memory"
refused no_memory 1 "is JSON, but not statistics" stats "$work/no_memory"
awk 'BEGIN { for (i = 0; i < 200000; i++) printf "["; }' >"$work/deep"
printf '{"a":%s' "$(cat "$work/deep")" >"$work/deep_json"
refused deep 1 "nested too deeply" stats "$work/deep_json"
echo '{"schema": 99, "pid": 1}' >"$work/later"
refused later 1 "is of another version of hakmem" stats "$work/later"
echo '<malloc version="1"><heap nr="0"></heap></malloc>' >"$work/glibc"
refused glibc 1 "ends XML that is not hakmem's" stats "$work/glibc"
printf '# TYPE up gauge\nup 1\n# EOF\n' >"$work/up"
refused up 1 "line 2 is no sample of OpenMetrics that hakmem writes" stats "$work/up"
printf 'hakmem_x{pid="1",size="8"} 1\n# EOF\n' | cat "$work/openmetrics.stats" - >"$work/many"
sed -i 's/^hakmem_live_bytes /hakmem_live_bytes{pid="7",program="x"} /' "$work/many"
refused many 1 "is of one of many processes" stats "$work/many"
mkfifo "$work/pipe"
refused pipe 1 "the file is empty" stats "$work/pipe"
slowly slow "$work/text.stats" stats
check "a slow writer is waited for" cmp "$work/slow.out" "$work/text.out"
if [ "$(id -u)" != 0 ]; then
    chmod 0 "$work/prose"
    refused denied 1 "Permission denied" stats "$work/prose"
fi
# Any piece of a report is refused in one line, wherever it is cut: never shown as if it were whole,
# never a crash.
for form in $forms; do
    "$hakmem" run -o stats=$form -o stats_file="$work/one.$form" ls -lR /etc >/dev/null 2>&1 || :
    length=$(wc -c <"$work/one.$form")
    for at in 1 2 3 7 20 100 1000 $((length / 3)) $((length / 2)) $((length - 50)) \
        $((length - 2)); do
        [ "$at" -lt "$length" ] || continue
        head -c "$at" "$work/one.$form" >"$work/piece"
        status=0
        "$hakmem" stats "$work/piece" >/dev/null 2>"$work/piece.err" || status=$?
        equal "$form cut after $at of $length bytes" "$status" 1
        equal "$form cut after $at bytes: lines" "$(wc -l <"$work/piece.err")" 1
    done
    lines=$(wc -l <"$work/one.$form")
    [ "$lines" -gt 1 ] || continue
    for lost in 1 2 10 $((lines / 2)); do
        head -n $((lines - lost)) "$work/one.$form" >"$work/piece"
        refused "piece" 1 "piece: line " stats "$work/piece"
    done
done
