# SPDX-License-Identifier: MIT
# SQLite's own tests, those that its authors run before each commit.
. "$(dirname "$0")/lib.sh"

oks() { grep -c '\.\.\. Ok$' || :; }
bads() { sed -n 's/^! \([^ ]*\) expected.*/\1/p'; }

begin sqlite
needs tclsh
[ -e /usr/include/tcl/tcl.h ] || skip "no tcl-dev: ./hak test --full installs it"
source_of sqlite3
(cd "$work/sqlite3" && ./configure --with-tcl=/usr/lib/tcl8.6 && make -j2 testfixture) \
    >"$work/build.log" 2>&1 || fail "SQLite cannot be built: $(tail -n 5 "$work/build.log")"
# The tests refuse to be run to their end by root.
as=
if [ "$(id -u)" = 0 ]; then
    as='setpriv --reuid=65534 --regid=65534 --clear-groups'
    chmod 711 "$work"
    chmod 777 "$work/plain" "$work/preloaded"
    : >"$work/sqlite.stats"
    chmod 666 "$work/sqlite.stats"
fi
# shellcheck disable=SC2086 # the command is words
compare $as sh -c 'cp -r "$1" . && cd sqlite3 && exec ./testfixture "test/$2"' sh "$work/sqlite3" \
    "${portion:-veryquick.test}"
check "SQLite's tests came to their end" grep -q 'errors out of' "$work/sqlite.said"
