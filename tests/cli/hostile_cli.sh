# SPDX-License-Identifier: MIT
# Arguments that nobody means: each subcommand ends at once, and says what is wrong in one line of
# plain characters. A table of subcommands and their words times a list of hostile words.
. "$(dirname "$0")/lib.sh"
needs sed grep head
plain=$work/plain
mkdir -p "$plain/folder"
printf 'junk\n' >"$plain/junk"
: >"$plain/empty"
head -c 5000 /dev/urandom >"$plain/noise"
escape=$(printf 'a\033[2Jb')
long=$(printf '%05000d' 0)

# ends NAME ARGUMENT...: an exit status that hakmem(1) names; one line, if it is not 0.
count=0
ends() {
    count=$((count + 1))
    words=$*
    asked_status=0
    (cd "$plain" && exec timeout "$limit_s" "$hakmem" "$@") \
        >"$work/out" 2>"$work/err" </dev/null || asked_status=$?
    case $asked_status in
    0) return 0 ;;
    1 | 2 | 126 | 127) ;;
    *) fail "hakmem $words: exit status $asked_status: $(head -c 300 "$work/err")" ;;
    esac
    [ "$(wc -l <"$work/err")" = 1 ] || fail "hakmem $words: $(head -n 4 "$work/err")"
    grep -q '^hakmem: ' "$work/err" || fail "hakmem $words: $(head -c 300 "$work/err")"
    ! LC_ALL=C grep -q '[^ -~]' "$work/err" || fail "hakmem $words: not plain: $(od -c "$work/err")"
    [ "$(wc -c <"$work/err")" -le 1200 ] || fail "hakmem $words: a line of $(wc -c <"$work/err")"
    [ ! -s "$work/out" ] || case $words in
    doctor* | migrate* | "learned --json"*) ;; # an answer is printed, and it is no
    *) fail "hakmem $words: printed $(head -n 3 "$work/out"), and failed" ;;
    esac
}

while read -r prefix; do
    for word in '' - -- -1 0 1 --frob --json= = =x x= ./junk ./empty ./noise ./folder /nosuch \
        /dev/null 99999999999999999999 0x10 nan 1e9 "$escape" "$long" '%s%n' '*'; do
        # shellcheck disable=SC2086
        ends $prefix "$word"
    done
done <<END
run --strict
run -o
run --mode
run -o decay=1
options
options --json
stats
stats --all
top --once
top --interval 1
top --serve
top --all --json
ps
ps --ask
ctl
ctl --wait
ctl 999999999
ctl 999999999 set
ctl 999999999 profile
doctor
migrate
migrate MALLOC_CONF=a:1
profile
profile --json
profile diff ./junk
profile --pprof
profile --live --folded
growth
growth 999999999
growth --most
autopsy
learned
learned show
learned diff ./junk
learned merge
learned lint
learned --json show
elo
elo --json
END
check "$count command lines were tried" [ "$count" -ge 800 ]

# The name of a file that is empty is shown as such.
for command in run stats profile autopsy; do
    status=1
    [ $command != run ] || status=127
    refused "empty_$command" $status "''" $command ''
done

# A reader may leave, and nothing hangs without standard files.
first=$("$hakmem" options | head -n 1)
check "options, one line of it: $first" [ "${first%% *}" = OPTION ]
status=0
"$hakmem" options <&- >&- 2>&- || status=$?
equal "without standard files" "$status" 1
status=0
"$hakmem" options </dev/null >&- 2>"$work/closed.err" || status=$?
equal "without standard output" "$status" 1
check "which is told" grep -qx 'hakmem: cannot write the output' "$work/closed.err"
