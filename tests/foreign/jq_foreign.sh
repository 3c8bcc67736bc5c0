# SPDX-License-Identifier: MIT
# jq's own tests: some hundred programs of its language, each on values that it takes and frees.
. "$(dirname "$0")/lib.sh"

# Each file of tests ends with a count; what is not counted is a script.
oks() {
    awk '/^PASS: / { all++ } / of [0-9]+ tests passed/ { all += $1 } END { print all + 0 }'
}
bads() { sed -nE 's/^(FAIL: .*|\*\*\* .*)/\1/p'; }

begin jq
needs autoreconf flex bison
[ -e /usr/include/oniguruma.h ] || skip "no libonig-dev: ./hak test --full installs it"
source_of jq
(cd "$work/jq" && autoreconf -fi && ./configure --disable-docs --disable-valgrind && make -j2) \
    >"$work/build.log" 2>&1 || fail "jq cannot be built: $(tail -n 5 "$work/build.log")"
compare sh -c 'cp -a "$1" . && cd jq && make check; cat tests/*.log' sh "$work/jq"
