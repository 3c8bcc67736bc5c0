# SPDX-License-Identifier: MIT
# `hakmem run`: the program gets hakmem, its settings, its arguments and its own exit status. If
# this fails, the first thing that people try does not work.
. "$(dirname "$0")/lib.sh"
needs sh ls sed

served_by() { sed -n 's/^threads_started: //p' "$work/$1.err"; }

asked serves 0 run -o stats=text ls /
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
"$work/link" run -o stats=text ls / >/dev/null 2>"$work/link.err" || fail "through a link"
check "a link to it finds the library" [ "$(served_by link)" -ge 1 ]

refused program 2 "the program is missing" run
refused only_options 2 "the program is missing" run --mode fast
refused dashes 2 "the program is missing" run --
refused argument 2 "usage: hakmem run" run -x ls
refused mode 2 "mode: bad value 'quick', accepted: minimal|fast|" run --mode quick ls
refused no_mode 2 "usage: hakmem run" run --mode
refused option 2 "there is no option 'colour'" run -o colour=red ls
refused value 2 "decay: bad value 'soon', accepted: 0ms to never" run -o decay=soon ls
refused no_value 2 "-o takes NAME=VALUE, not 'decay'" run -o decay ls
refused absent 127 "no_such_program: No such file" run no_such_program
refused absent_path 127 "/no/such/program: No such file" run /no/such/program
echo text >"$work/text"
refused text 126 "text: Permission denied" run "$work/text"
refused folder 126 "Permission denied" run /tmp

# Without a library there is nothing to run with; with a path that the loader would take for two.
mkdir "$work/else" "$work/a b"
cp "$hakmem" "$work/else/hakmem"
hakmem=$work/else/hakmem
refused library 1 "libhakmem.so is neither in" run ls
cp "$OUT/hakmem" "$work/a b/hakmem"
cp "$PRELOAD_LIB" "$work/a b/libhakmem.so"
hakmem="$work/a b/hakmem"
refused space 1 "LD_PRELOAD cannot hold a path with a space or a colon" run ls
