# SPDX-License-Identifier: MIT
# The command itself: help, version, and what is no subcommand.
. "$(dirname "$0")/lib.sh"
needs sed grep
asked help 0 --help
for command in run options stats top doctor; do
    shows help "^  hakmem $command "
done
asked help_too 0 help
asked version 0 --version
equal "the version" "$(cat "$work/version.out")" \
    "hakmem $(sed -n 's/^#define HAKMEM_VERSION_TEXT "\(.*\)"/\1/p' \
        "$tests/../../include/hakmem/hakmem.h")"
refused nothing 2 "a subcommand is missing"
refused unknown 2 "there is no subcommand 'frobnicate'" frobnicate
refused control 2 "there is no subcommand 'a?[2Jb'" "$(printf 'a\033[2Jb')"
refused dash 2 "there is no subcommand '-x'" -x

# Output that does not arrive is not a success.
status=0
"$hakmem" options >/dev/full 2>"$work/full.err" || status=$?
equal "a full disk: $(cat "$work/full.err")" "$status" 1
