# SPDX-License-Identifier: MIT
# The command itself: help, version, and what is no subcommand.
. "$(dirname "$0")/lib.sh"
needs sed grep
asked help 0 --help
for command in run options stats top ps ctl doctor migrate profile growth autopsy; do
    shows help "^  hakmem $command "
    asked "help_$command" 0 "$command" --help
    shows "help_$command" "^usage: hakmem $command "
done
shows help_profile 'PROFILE \| diff \[--all\] A B$'
asked help_too 0 help
asked version 0 --version
equal "the version" "$(cat "$work/version.out")" \
    "hakmem $(sed -n 's/^#define HAKMEM_VERSION_TEXT "\(.*\)"/\1/p' \
        "$tests/../../include/hakmem/hakmem.h")"
refused nothing 2 "a subcommand is missing"
refused unknown 2 "there is no subcommand 'frobnicate'" frobnicate
refused control 2 "there is no subcommand 'a?[2Jb'" "$(printf 'a\033[2Jb')"
refused dash 2 "there is no subcommand '-x'" -x
refused near 2 "there is no subcommand 'stauts'; the nearest is stats" stauts

# Help fits a terminal of 80 columns.
for command in "" $(sed -n 's/^  hakmem \([a-z]*\) .*/\1/p' "$work/help.out"); do
    asked "narrow_$command" 0 $command --help
    equal "${command:-hakmem} --help: lines of more than 79 columns" \
        "$(awk 'length > 79' "$work/$name.out")" ""
done
check "its usage goes on in another line" [ "$(grep -c '^ *\[' "$work/narrow_profile.out")" -ge 1 ]

# What is wrong is told, not how it would be right only.
refused top_word 2 "top: 'abc' is not a process id" top abc
refused top_none 2 "top: the process is missing" top
refused top_two 2 "top: one process at a time, not also '2'" top 1 2
refused top_pace 2 "top: --interval takes 0.25 to 64 seconds, not '0.01'" top 1 --interval 0.01
refused top_no_pace 2 "top: --interval takes 0.25 to 64 seconds, not 'nothing'" top 1 --interval
refused top_port 2 "top: --serve takes a port, 0 to 65535, not '70000'" top 1 --serve 70000
refused top_all 2 "top: --all goes with --serve" top --all
refused top_all_one 2 "top: --all goes with --serve" top 1 --all --serve 0
refused top_never 2 "top: there is no argument '--never'" top 1 --never

# Output that does not arrive is not a success.
status=0
HAKMEM_STATS_SHM=1 LD_PRELOAD="$PRELOAD_LIB" sleep 300 &
sleeper=$!
becomes "the process publishes its statistics" [ -e "/dev/shm/hakmem.$sleeper" ]
for form in --once --json; do
    status=0
    "$hakmem" top "$sleeper" "$form" >/dev/full 2>"$work/full.err" || status=$?
    equal "top $form, a full disk" "$status, $(cat "$work/full.err")" \
        "1, hakmem: cannot write the output"
done
kill "$sleeper"
status=0
"$hakmem" options >/dev/full 2>"$work/full.err" || status=$?
equal "a full disk: $(cat "$work/full.err")" "$status" 1
