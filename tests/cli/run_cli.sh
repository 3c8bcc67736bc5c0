# SPDX-License-Identifier: MIT
# `hakmem run`: the program gets hakmem, its settings, its arguments and its own exit status. If
# this fails, the first thing that people try does not work.
. "$(dirname "$0")/lib.sh"
needs sh ls sed

served_by() { sed -n 's/^threads_started: //p' "$work/$1.err"; }

asked serves 0 run -o stats=raw ls /
check "ls is served" [ "$(served_by serves)" -ge 1 ]
asked plain 0 run ls /
check "nothing is said unasked: $(cat "$work/plain.err")" [ ! -s "$work/plain.err" ]
equal "the output is the program's" "$(cat "$work/plain.out")" "$(ls /)"

asked status 42 run sh -c 'exit 42'
asked signal 143 run sh -c 'kill -TERM $$'
asked arguments 0 run -- printf '<%s>' -o 'a b' --mode ''
equal "arguments arrive as they are" "$(cat "$work/arguments.out")" "<-o><a b><--mode><>"

HAKMEM_SHOW_CONF=1
export HAKMEM_SHOW_CONF
asked settings 0 run --mode fast -o decay=2s -oretain=3M --mode=minimal ls /
set_to() { sed -n "s/^hakmem: $1=//p" "$work/$name.err"; }
equal "the last mode holds" "$(set_to mode)" "minimal (environment)"
equal "an option" "$(set_to decay)" "2000 (environment)"
equal "an option in the same word" "$(set_to retain)" "3145728 (environment)"
unset HAKMEM_SHOW_CONF

# What is preloaded already stays.
LD_PRELOAD=/no/such/library.so "$hakmem" run sh -c 'echo "$LD_PRELOAD"' \
    >"$work/both" 2>/dev/null || fail "run beside another library"
check "what was preloaded stays: $(cat "$work/both")" \
    grep -qE '^/.*libhakmem\.so[^:]*:/no/such/library\.so$' "$work/both"
LD_PRELOAD= "$hakmem" run sh -c 'echo "$LD_PRELOAD"' >"$work/alone"
check "nothing is added to nothing" grep -qE '^/[^:]*$' "$work/alone"

# By another name, through a link, from another folder.
ln -s "$hakmem" "$work/link"
"$work/link" run -o stats=raw ls / >/dev/null 2>"$work/link.err" || fail "through a link"
check "a link to it finds the library" [ "$(served_by link)" -ge 1 ]

refused program 2 "the program is missing" run
refused only_options 2 "the program is missing" run --mode fast
refused dashes 2 "the program is missing" run --
refused argument 2 "run: there is no option '-x'" run -x ls
refused mode 2 "mode: bad value 'quick', accepted: minimal|fast|" run --mode quick ls
refused no_mode 2 "run: nothing follows --mode" run --mode
refused option 2 "there is no option 'colour'" run -o colour=red ls
refused value 2 "decay: bad value 'soon', accepted: 0ms to never" run -o decay=soon ls
refused fence 2 "fence: bad value '32..16', accepted: none, all, a size, " run -o fence=32..16 ls
refused signal_name 2 "stats_signal: bad value 'KILL', accepted: a signal that " \
    run -o stats_signal=KILL ls
refused no_value 2 "-o takes NAME=VALUE, not 'decay'" run -o decay ls
folders=$PATH
PATH=/usr/bin:/bin # in one that this user may not read there might be such a program
refused absent 127 "no_such_program: No such file" run no_such_program
PATH=$folders
refused absent_path 127 "/no/such/program: No such file" run /no/such/program
echo text >"$work/text"
refused text 126 "text: Permission denied" run "$work/text"
refused folder 126 "Permission denied" run /tmp

# Settings are taken as they are written elsewhere, too; a mistake is told by its nearest.
HAKMEM_SHOW_CONF=1
export HAKMEM_SHOW_CONF
asked forms 0 run -o decay:2s -o 'retain = 3M' -o HAKMEM_THP=off ls /
equal "a colon" "$(set_to decay)" "2000 (environment)"
equal "white space" "$(set_to retain)" "3145728 (environment)"
equal "the variable's name" "$(set_to thp)" "off (environment)"
unset HAKMEM_SHOW_CONF
refused near 2 "there is no option 'dekay'; the nearest is decay" run -o dekay=2s ls
asked help 0 run --help
shows help '^usage: hakmem run '
shows help '^ +PROGRAM '
shows help '^ +--strict '

shows help '^ +--bounds '

# Checked copies: both libraries, the allocator first.
if [ -e "$OUT/libhakmem-bounds.so" ]; then
    asked bounds 0 run --bounds sh -c 'echo "$LD_PRELOAD"'
    check "both are preloaded: $(cat "$work/bounds.out")" \
        grep -qE '^/.*libhakmem\.so[^:]*:/.*libhakmem-bounds\.so$' "$work/bounds.out"
    equal "nothing is said" "$(cat "$work/bounds.err")" ""
fi

# A program that hakmem cannot serve runs, and is said to; with --strict it does not.
# alone NAME WORDS PROGRAM...
alone() {
    alone_name=$1
    words=$2
    shift 2
    asked "$alone_name" 0 run "$@"
    equal "$name: one line: $(cat "$work/$name.err")" "$(wc -l <"$work/$name.err")" 1
    check "$name says it: $(cat "$work/$name.err")" \
        grep -qF -- "$1 $words: it runs without hakmem" "$work/$name.err"
    equal "$name runs" "$(cat "$work/$name.out")" own
    refused "strict_$name" 126 "$1 $words: not run (--strict)" run --strict "$@"
}
alone own "defines malloc itself" "$OUT/tests/preload_own_malloc"
asked strict 0 run --strict ls /
check "nothing is said of one that is served" [ ! -s "$work/strict.err" ]
printf '#!%s\n' "$OUT/tests/preload_own_malloc" >"$work/script"
chmod +x "$work/script"
PATH=$PATH:$work
cp "$OUT/tests/preload_own_malloc" "$work/own_in_path"
alone in_path "defines malloc itself" own_in_path
if command -v cc >/dev/null; then
    echo 'int puts(const char *); int main(void) { puts("own"); return 0; }' >"$work/own.c"
    cc -static -o "$work/static" "$work/own.c" &&
        alone static "is static (link it with hakmem.o instead)" "$work/static"
    cc -static-pie -o "$work/static_pie" "$work/own.c" 2>/dev/null &&
        alone static_pie "is static (link it with hakmem.o instead)" "$work/static_pie"
    cc -o "$work/dynamic" "$work/own.c"
    if [ "$(id -u)" = 0 ] && cp "$work/dynamic" "$work/raised" && chown 1:1 "$work/raised" &&
        chmod 4755 "$work/raised"; then
        alone setuid "has raised privileges (setuid, setgid or capabilities)" "$work/raised"
        chown 0:0 "$work/raised"
        chmod 4755 "$work/raised"
        asked same_user 0 run --strict "$work/raised"
    fi
    for sanitizer in address thread; do
        cc -fsanitize="$sanitizer" -o "$work/$sanitizer" "$work/own.c" 2>/dev/null &&
            [ "$("$work/$sanitizer" 2>/dev/null)" = own ] &&
            grep -qaE 'lib[at]san\.so' "$work/$sanitizer" &&
            alone "$sanitizer" "is built with a sanitizer, which has its own malloc" \
                "$work/$sanitizer"
    done
    cc -static -o "$work/linked" "$OUT/hakmem.o" "$work/own.c" -pthread &&
        asked linked 0 run --strict "$work/linked"
fi
asked script 0 run "$work/script"
check "the interpreter of a script is looked at" grep -q "defines malloc" "$work/script.err"
# Any bytes may be in the file: 20 of the header of another machine, pieces of one of this.
cp "$OUT/tests/preload_own_malloc" "$work/other"
printf '\000\377' | dd of="$work/other" bs=1 seek=18 conv=notrunc 2>/dev/null
refused machine 126 "is built for another kind of machine: not run" run --strict "$work/other"
length=$(wc -c <"$work/own_in_path")
for part in 1000 100 20 7 5 3 2; do
    head -c $((length / part)) "$work/own_in_path" >"$work/piece"
    refused piece 126 "/piece" run --strict "$work/piece"
    echo "$part" | dd of="$work/other" bs=1 seek=$((length / part)) conv=notrunc 2>/dev/null
    asked other 126 run --strict "$work/other"
done

# Without a library there is nothing to run with; with a path that the loader would take for two.
mkdir "$work/else" "$work/a b"
cp "$hakmem" "$work/else/hakmem"
hakmem=$work/else/hakmem
refused library 1 "libhakmem.so is neither in" run ls
cp "$OUT/hakmem" "$work/a b/hakmem"
cp "$PRELOAD_LIB" "$work/a b/libhakmem.so"
hakmem="$work/a b/hakmem"
refused space 1 "LD_PRELOAD cannot hold a path with a space or a colon" run ls
