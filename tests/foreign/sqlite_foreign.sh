# SPDX-License-Identifier: MIT
# SQLite's own tests, those that its authors run before each commit: a third of a million checks.
. "$(dirname "$0")/lib.sh"

oks() { grep -c '\.\.\. Ok$' || :; }
bads() { sed -n 's/^! \([^ ]*\) expected.*/\1/p'; }

begin sqlite
needs tclsh
[ -e /usr/include/tcl/tcl.h ] || skip "no tcl-dev: ./hak test --full installs it"
source_of sqlite3
(cd "$work/sqlite3" && ./configure --with-tcl=/usr/lib/tcl8.6 && make -j2 testfixture) \
    >"$work/build.log" 2>&1 || fail "SQLite cannot be built: $(tail -n 5 "$work/build.log")"
compare sh -c 'cp -r "$1" . && cd sqlite3 && exec ./testfixture "test/$2"' sh "$work/sqlite3" \
    "${portion:-veryquick.test}"
