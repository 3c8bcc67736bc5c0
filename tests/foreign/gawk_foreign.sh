# SPDX-License-Identifier: MIT
# gawk's own tests: thousands of short processes that allocate strings and arrays.
. "$(dirname "$0")/lib.sh"

# Each test says its name; one that fails, an error as well.
oks() { awk '/^[a-z0-9_-]+$/ { all++ } / Error 1/ { bad++ } END { print all - bad }'; }
bads() { sed -n 's/.*\*\*\* \[[^]]*: \([a-z0-9_-]*\)\] Error.*/\1/p'; }

begin gawk
source_of gawk
# Debian's source is without the manual, so not all of it can be made.
(cd "$work/gawk" && ./configure --disable-nls --disable-extensions && make -j2 -C support &&
    make -j2 gawk) >"$work/build.log" 2>&1 ||
    fail "gawk cannot be built: $(tail -n 5 "$work/build.log")"
compare sh -c 'cp -r "$1" . && cd gawk/test && make -k check 2>&1' sh "$work/gawk"
