# SPDX-License-Identifier: MIT
# hakmem profile: files of all formats, with names of functions; each form of output. The profile is
# one that a program prints of itself, with numbers that are known.
. "$(dirname "$0")/lib.sh"
needs awk sed jq protoc gzip objcopy strip
proto=$tests/../../cli/profiles/profile.proto
profiled=$OUT/tests/cli_profiled
"$profiled" >"$work/heap"
"$profiled" 3 >"$work/heap3"

# estimate OBJECTS SIZE FIELD: what so many samples stand for, objects (1) or bytes (2).
estimate() {
    awk -v n="$1" -v size="$2" -v field="$3" 'BEGIN {
        factor = 1 / (1 - exp(-size / 524288))
        printf "%d\n", (field == 1 ? n : n * size) * factor + 0.5 }'
}

# The table: names of C++ and Rust, inlined functions with file and line, in 80 columns.
asked table 0 profile "$work/heap"
line=$(grep -n 'the call of keep' "$tests/aid/profiled.cpp" | cut -d: -f1)
shows table '^cli_profiled: 55\.1 MiB live in 53452 blocks$'
shows table '^estimates; one sample in 512\.0 KiB in the mean$'
shows table '^  50\.0 MiB   90\.9%    52479 +-  shop::Shelf<char>::keep  profiled\.cpp:[0-9]+$'
shows table '^ +< shop::Shelf<char>::fill < main$'
shows table '  market::stall::open  profiled\.cpp:'
shows table '  market::close  profiled\.cpp:'
equal "no line is wider" "$(awk 'length > 80' "$work/table.out")" ""
COLUMNS=60 "$hakmem" profile "$work/heap" >"$work/narrow"
equal "nor in 60 columns" "$(awk 'length > 60' "$work/narrow")" ""
check "the function is there" grep -q 'shop::.*keep' "$work/narrow"

# Folded stacks: exact numbers.
asked folded 0 profile "$work/heap" --folded
shows folded ";main;shop::Shelf<char>::fill;shop::Shelf<char>::keep $(estimate 100 1000 2)\$"
shows folded ";main;shop::Shelf<long>::fill;shop::Shelf<long>::keep $(estimate 5 8000 2)\$"
shows folded ";main;market::stall::open $(estimate 3 4096 2)\$"
equal "four stacks" "$(wc -l <"$work/folded.out")" 4
asked live 0 profile --folded --live "$work/heap"
check "what lives is meant" cmp "$work/live.out" "$work/folded.out"
asked allocated 0 profile "$work/heap" --folded --allocated
shows allocated ";main;market::close $(estimate 4 4096 2)\$"

# Folded stacks have no numbers of blocks: none are shown.
asked no_blocks 0 profile "$work/folded.out"
shows no_blocks '^heap profile: 55\.1 MiB live$'
shows no_blocks '^  50\.0 MiB   90\.9%        -        -  shop::Shelf<char>::keep$'
asked no_blocks_json 0 profile "$work/folded.out" --json
equal "nor in JSON" "$(jq '[.sites[].live_objects] | unique[0]' "$work/no_blocks_json.out")" null
asked no_blocks_again 0 profile "$work/no_blocks_json.out"
shows no_blocks_again '^heap profile: 55\.1 MiB live$'

# JSON: the frames of a stack from the inside outwards, inlined ones as such.
asked json 0 profile "$work/heap" --json
check "it is JSON" sh -c 'jq . "$0" >/dev/null' "$work/json.out"
frame='.sites[] | select(.stack[0].function == "shop::Shelf<char>::keep")'
equal "its bytes" "$(jq "$frame | .live_bytes" "$work/json.out")" "$(estimate 100 1000 2)"
equal "its blocks" "$(jq "$frame | .live_objects" "$work/json.out")" "$(estimate 100 1000 1)"
equal "inlined" "$(jq -r "$frame | .stack[0].inlined" "$work/json.out")" true
equal "its caller" "$(jq -r "$frame | .stack[1].function" "$work/json.out")" \
    "shop::Shelf<char>::fill"
equal "where it was called" "$(jq -r "$frame | .stack[1].line" "$work/json.out")" "$line"
equal "in which file" "$(jq -r "$frame | .stack[1].file" "$work/json.out" | sed 's,.*/,,')" \
    profiled.cpp

# Clang writes no index of addresses: files and lines are found without it.
objcopy --remove-section .debug_aranges "$profiled" "$work/cli_profiled"
"$work/cli_profiled" >"$work/heap_no_index"
asked no_index 0 profile "$work/heap_no_index" --json
equal "the same functions, files and lines" \
    "$(jq -cS '[.sites[].stack[] | {function, file, line, inlined}]' "$work/no_index.out")" \
    "$(jq -cS '[.sites[].stack[] | {function, file, line, inlined}]' "$work/json.out")"

# pprof: what another reader sees, and what comes back.
asked pprof 0 profile "$work/heap" --pprof "$work/pprof.gz"
check "nothing is printed" [ ! -s "$work/pprof.out" ]
check "it is gzip" gzip -t "$work/pprof.gz"
decoded() { gzip -dc "$1" | protoc --decode=pprof.Profile --proto_path="${proto%/*}" "$proto"; }
decoded "$work/pprof.gz" >"$work/decoded"
for word in alloc_objects alloc_space inuse_objects inuse_space lifetime nanoseconds \
    'shop::Shelf<char>::keep' market::stall::open; do
    check "protobuf reads $word" grep -qF "string_table: \"$word\"" "$work/decoded"
done
check "and the period" grep -q '^period: 524288$' "$work/decoded"
check "and the bytes" grep -q "value: $(estimate 100 1000 2)\$" "$work/decoded"
asked again 0 profile "$work/pprof.gz" --folded
check "the same comes back" cmp "$work/again.out" "$work/folded.out"
gzip -dc "$work/pprof.gz" >"$work/plain.pb"
asked plain 0 profile "$work/plain.pb" --folded
check "without gzip, too" cmp "$work/plain.out" "$work/folded.out"
if [ -n "${HAK_FULL:-}" ] && command -v go >/dev/null; then
    export HOME="$work" GOCACHE="$OUT/go" GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off
    go tool pprof -top -sample_index=inuse_space "$work/pprof.gz" >"$work/top" 2>&1 ||
        fail "go tool pprof: $(cat "$work/top")"
    check "go's pprof: $(cat "$work/top")" \
        grep -qE '^ *52\.57MB 95\.44% .* shop::Shelf::keep \(inline\)$' "$work/top"
    go tool pprof -top -sample_index=inuse_objects "$work/pprof.gz" >"$work/top" 2>&1
    check "go's pprof, blocks: $(cat "$work/top")" grep -qE '^ *52809 ' "$work/top"
fi

# "-" is standard input and standard output, as elsewhere; no file has this name.
through() { (cd "$work/plain" && "$hakmem" profile "$@" 2>"$work/through.err"); }
through - --folded <"$work/heap" >"$work/through" || fail "$(cat "$work/through.err")"
check "standard input is read" cmp "$work/through" "$work/folded.out"
gzip -dc "$work/pprof.gz" | through - --pprof - | through --folded - >"$work/through"
check "and a profile goes through pipes" cmp "$work/through" "$work/folded.out"
status=0
through "$work/heap" --flame - >/dev/full || status=$?
equal "a full disk: exit status" "$status" 1
check "and why: $(cat "$work/through.err")" \
    grep -q '^hakmem: profile: - .*No space' "$work/through.err"
equal "no file is made" "$(find "$work/plain" -name -)" ""

# heap_v2: written as estimates, of all blocks.
asked heap_v2 0 profile "$work/heap" --heap-v2 "$work/heap_v2"
equal "its period is 1" "$(head -n 1 "$work/heap_v2")" heap_v2/1
asked heap_v2_again 0 profile "$work/heap_v2" --folded
check "the same comes back" cmp "$work/heap_v2_again.out" "$work/folded.out"
if command -v jeprof >/dev/null; then
    for file in heap heap_v2; do
        jeprof --text "$profiled" "$work/$file" >"$work/jeprof" 2>"$work/jeprof.err" ||
            fail "jeprof: $(cat "$work/jeprof.err")"
        check "jeprof reads $file: $(cat "$work/jeprof")" \
            grep -qE '^Total: 55\.1 MB' "$work/jeprof"
        check "and the names" grep -qE '^ +52\.6 +95\.4% .* shop::Shelf' "$work/jeprof"
    done
fi

# The flame graph is one page: nothing is fetched, and all of the profile is in it.
asked flame 0 profile "$work/heap" --flame "$work/flame.html"
sed -n '/id="profile"/,/<\/script>/p' "$work/flame.html" | sed 's/.*json">//; s/<\/script>.*//' \
    >"$work/flame.json"
equal "its data is JSON" "$(jq '.sites | length' "$work/flame.json")" 4
equal "its bytes" "$(jq '[.sites[][0][0]] | add' "$work/flame.json")" \
    "$(awk '{ sum += $NF } END { print sum }' "$work/folded.out")"
check "no other file is named" sh -c '! grep -E "(src|href)=|@import|url\(|https?:" "$0"' \
    "$work/flame.html"
equal "one page" "$(grep -c '</html>' "$work/flame.html")" 1
if command -v node >/dev/null; then
    sed -n '/^"use strict";$/,/<\/script>/p' "$work/flame.html" | sed '$d' >"$work/flame.js"
    check "its script is one" node --check "$work/flame.js"
fi

# Files are for their owner alone; one that was there keeps its mode.
for file in pprof.gz heap_v2 flame.html; do
    equal "mode of $file" "$(stat -c %a "$work/$file")" 600
done
touch "$work/open.html"
asked open_mode 0 profile "$work/heap" --flame "$work/open.html"
equal "mode of a file that was there" "$(stat -c %a "$work/open.html")" 644

# What grew: by function.
asked diff 0 profile diff "$work/heap" "$work/heap3"
shows diff '^\+105\.1 MiB where it grew, 0 B where it shrank$'
shows diff '^ \+100\.1 MiB +50\.0 MiB +150\.1 MiB  shop::Shelf<char>::keep  profiled\.cpp$'
equal "largest first" "$(grep -o 'Shelf<[a-z]*>::keep' "$work/diff.out" | xargs)" \
    "Shelf<char>::keep Shelf<long>::keep"
asked shrunk 0 profile diff "$work/pprof.gz" "$work/heap"
shows shrunk '^nothing$'

# Without debug information there are names of the symbol table; without that, module+offset; a
# debug file beside it is found.
cp "$profiled" "$work/lean"
"$work/lean" >"$work/lean.heap"
mkdir "$work/.debug.apart"
objcopy --only-keep-debug "$work/lean" "$work/.debug.apart/lean.debug"
strip --strip-debug "$work/lean"
asked symbols 0 profile "$work/lean.heap" --folded
shows symbols ';main;market::close [0-9]+$'
strip "$work/lean"
asked stripped 0 profile "$work/lean.heap" --folded
shows stripped ';lean\+0x[0-9a-f]+;lean\+0x[0-9a-f]+ [0-9]+$'
check "no name is left" sh -c '! grep -q shop "$0"' "$work/stripped.out"
mv "$work/.debug.apart" "$work/.debug"
objcopy --add-gnu-debuglink="$work/.debug/lean.debug" "$work/lean"
asked linked 0 profile "$work/lean.heap" --folded
check "the names are back" cmp "$work/linked.out" "$work/folded.out"

# Other tools' files: numbers in no order, types in another, unknown fields.
encoded() {
    protoc --encode=pprof.Profile --proto_path="${proto%/*}" "$proto" >"$work/$1" 2>/dev/null
}
strings='string_table: "" string_table: "space" string_table: "bytes" string_table: "f"
    string_table: "a;</script>\"\xff" string_table: "objects" string_table: "cpu"'
encoded other <<TEXT
$strings
sample_type { type: 5 unit: 1 } sample_type { type: 1 unit: 2 }
sample { location_id: 900 location_id: 7 value: 2 value: 640 }
location { id: 900 line { function_id: 44 line: 12 } } location { id: 7 line { function_id: 3 } }
function { id: 44 name: 3 } function { id: 3 name: 4 }
TEXT
asked other 0 profile "$work/other" --folded
equal "another tool's" "$(cat -v "$work/other.out")" 'a,</script>"M-^?;f 640'
asked other_json 0 profile "$work/other" --json
equal "what is no UTF-8" "$(jq -r '.sites[0].stack[1].function' "$work/other_json.out")" \
    "$(printf 'a;</script>"\357\277\275')"
asked other_flame 0 profile "$work/other" --flame "$work/other.html"
equal "a name ends no script" "$(grep -c '</script>' "$work/other.html")" 2

printf 'heap_v2/1\n@ 0x1\n  t*: 0: 0 [5: 50]\n\nMAPPED_LIBRARIES:\n' >"$work/freed"
asked freed 0 profile "$work/freed"
shows freed '^nothing$'

# Where samples stand for more than was asked for, the distance in force is told; where blocks are
# so large that each is a sample, only the least that it may be.
# sampled NAME SAMPLES BLOCKS BYTES: a profile with one site; asked for was one sample in 4 KiB.
sampled() {
    printf '{"schema":1,"period_bytes":4096,"sites":[{"live_bytes":1,"samples":%s,' "$2" >"$work/$1"
    printf '"allocated_objects":%s,"allocated_bytes":%s,"stack":[]}]}\n' "$3" "$4" >>"$work/$1"
    asked "$1" 0 profile "$work/$1"
}
sampled doubled 4329 844000 844000000
shows doubled '^estimates; one sample in 189\.9 KiB in the mean$'
asked doubled_pprof 0 profile "$work/doubled" --pprof "$work/doubled.gz"
decoded "$work/doubled.gz" >"$work/doubled.text"
check "pprof has it, too" grep -q '^period: 19446[0-9]$' "$work/doubled.text"
sampled as_asked 4329 17800 17800000
shows as_asked '^estimates; one sample in 4\.0 KiB in the mean$'
sampled large 200 200 200000000
shows large '^estimates; one sample in at least 4\.0 KiB in the mean$'

# What is no profile of memory is refused in one line.
encoded cpu <<TEXT
$strings
sample_type { type: 6 unit: 1 } sample { value: 1 }
TEXT
refused cpu 1 "cpu holds no bytes of memory but 'cpu'" profile "$work/cpu"
encoded negative <<TEXT
$strings
sample_type { type: 1 unit: 2 } sample { value: -1 }
TEXT
refused negative 1 "has negative values" profile "$work/negative"
refused ages 1 "does not record when blocks were allocated" profile --leaks "$work/heap"
refused no_allocated 1 "does not record allocated bytes" profile --folded --allocated "$work/other"
refused absent 1 "No such file or directory" profile "$work/absent"
refused folder 1 "Is a directory" profile "$work"
: >"$work/empty"
refused empty 1 "is empty" profile "$work/empty"
echo hello >"$work/prose"
refused prose 1 "is no heap profile" profile "$work/prose"
head -c 100000 "$PRELOAD_LIB" >"$work/binary"
refused binary 1 "is no heap profile" profile "$work/binary"
printf 'heap_v2/x\n' >"$work/no_period"
refused no_period 1 "line 1 has no period" profile "$work/no_period"
printf 'heap_v2/1\n@ 0x1\n  t*: 1: x\n' >"$work/no_count"
refused no_count 1 "line 3 is not" profile "$work/no_count"
printf 'heap_v2/1\n@ 0x1 zzz\n' >"$work/no_stack"
refused no_stack 1 "line 2 is no stack" profile "$work/no_stack"
# So are half a file, and statistics, which are no profile: not shown as one that holds nothing. A
# cut right behind a line of the mappings cannot be told from the end.
for heap in heap heap_v2; do
    length=$(wc -c <"$work/$heap")
    for percent in 10 30 50 70 90 99; do
        head -c $((length * percent / 100)) "$work/$heap" | sed -z 's/\n$//' >"$work/half"
        refused "half" 1 "half " profile "$work/half"
    done
    sed '/MAPPED_LIBRARIES/,$d' "$work/$heap" >"$work/unmapped"
    refused unmapped 1 "is cut short: it has no MAPPED_LIBRARIES" profile "$work/unmapped"
    head -c -1 "$work/$heap" >"$work/unended"
    refused unended 1 "is cut short: its last line has no end" profile "$work/unended"
done
for form in raw json text xml openmetrics; do
    "$hakmem" run -o stats=$form -o stats_file="$work/stats.$form" true
    check "$form: there are statistics" [ -s "$work/stats.$form" ]
done
for form in raw json; do
    refused "stats_$form" 1 "is statistics, not a heap profile: hakmem stats shows them" \
        profile "$work/stats.$form"
done
for form in text xml openmetrics; do
    refused "stats_$form" 1 "stats.$form " profile "$work/stats.$form"
done
echo '{}' >"$work/nothing"
refused nothing_json 1 "is JSON, but no heap profile" profile "$work/nothing"
refused no_room 1 "No such file or directory" profile "$work/heap" --pprof "$work/no/such/folder"
refused full 1 "profile: /dev/full" profile "$work/heap" --heap-v2 /dev/full
check "a device stays" [ -c /dev/full ]
length=$(wc -c <"$work/pprof.gz")
for at in 1 2 3 10 18 50 $((length / 2)) $((length - 9)) $((length - 1)); do
    head -c "$at" "$work/pprof.gz" >"$work/cut"
    refused "cut" 1 "cut " profile "$work/cut"
done

# A pipe: a slow writer is waited for, and none is not.
slowly slow "$work/heap" profile --folded
check "the same as of the file" cmp "$work/slow.out" "$work/folded.out"
mkfifo "$work/pipe"
refused pipe 1 "$work/pipe" profile "$work/pipe"

# A bomb: what unpacks to more than any profile is not unpacked to its end.
head -c 300000000 /dev/zero | gzip -1 >"$work/bomb"
refused bomb 1 "is too large" profile "$work/bomb"

# Wrong usage.
refused nothing 2 "the process or the file is missing" profile
refused option 2 "there is no option '--frob'" profile --frob x
refused two 2 "not also 'b'" profile a b
refused no_out 2 "--pprof takes the name of a file" profile a --pprof
refused next_out 2 "--pprof takes the name of a file" profile --pprof --folded "$work/heap"
refused diff_one 2 "two profiles" profile diff a
refused gone 1 "there is no process 999999999" profile 999999999
refused without 1 "process $$ has no heap profile: try hakmem ctl $$ profile on, or" profile $$
