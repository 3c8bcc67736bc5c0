# SPDX-License-Identifier: MIT
# tests/foreign/lib.sh - sourced by the scripts here: somebody else's whole test suite, once without
# hakmem and once on it. What fails without it, too, is not hakmem's.
#
# A part that is done is not done again for the same library (out/full/NAME.row, $HAK_AGAIN forces
# it). The rows of all parts are docs/FOREIGN.md; what is there and was not run here stays.
# $HAK_PORTION runs a portion of a suite: its row says so, and the suite does not count as done.
. "$(dirname "$0")/../preload/lib.sh"
root=$(cd "$tests/../.." && pwd)
state=$root/out/full
library=$(sha256sum "$PRELOAD_LIB" | cut -c1-12)
mkdir -p "$state"
limit_s=7000

# begin NAME: skips what is not asked for, and what is done.
begin() {
    suite=$1
    full || skip "other people's suites take long: ./hak test --full"
    portion=${HAK_PORTION:-}
    if [ -z "${HAK_AGAIN:-}$portion" ] && grep -qs " $library |" "$state/$suite.row"; then
        check "done before: $(cat "$state/$suite.row")" true
        exit 0
    fi
}

# newest_there PACKAGE OPTIONS...: the newest of its sources that a mirror has: one may lag.
newest_there() {
    package=$1
    shift
    apt-cache "$@" showsrc "$package" | sed -n 's/^Version: //p' | sort -ruV >"$apt/versions"
    while read -r newest; do
        ! apt-get "$@" source "$package=$newest" </dev/null || return 0
    done <"$apt/versions"
    return 1
}

# source_of PACKAGE: unpacks Debian's source into $work/PACKAGE. The package lists are private: the
# system's do not change.
source_of() {
    needs apt-get dpkg-source make gcc
    apt=$work/apt
    mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        case $file in
        *.list)
            sed -n 's/^deb /deb-src /p' "$file" >"$apt/parts/${file##*/}" 2>/dev/null || :
            ;;
        *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/${file##*/}" ;;
        esac
    done
    set -- "$1" -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts" \
        -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=
    package=$1
    shift
    (cd "$work" && apt-get "$@" update && newest_there "$package" "$@") \
        >"$work/source.log" 2>&1 ||
        skip "no source of $package: $(tail -n 1 "$work/source.log")"
    for folder in "$work/$package"-*/; do
        mv "$folder" "$work/$package"
    done
    version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$work/$package/debian/changelog")
}

# compare COMMAND...: runs it plainly and on hakmem. The script defines oks and bads, which read
# what it said: a count of what passed, and one line for each that failed.
compare() {
    plainly "$suite" "$@"
    preloaded "$suite" "$@"
    for how in .plain ''; do
        cat "$work/$suite$how.out" "$work/$suite$how.err" >"$work/$suite$how.said"
        bads <"$work/$suite$how.said" | sort -u >"$work/$suite$how.bad"
    done
    passed=$(oks <"$work/$suite.said")
    passed_plain=$(oks <"$work/$suite.plain.said")
    echo "$suite $version: plain $passed_plain passed, hakmem $passed passed"
    for how in .plain ''; do
        echo "$suite$how: exit status $(cat "$work/$suite$how.status")," \
            "ends: $(grep -a . "$work/$suite$how.out" | tail -n 1 | cut -c1-200)"
        check "$suite$how: is done in $limit_s s" [ "$(cat "$work/$suite$how.status")" != 124 ]
    done
    check "$suite: tests ran: $(tail -n 5 "$work/$suite.plain.said")" [ "$passed_plain" -gt 10 ]
    comm -23 "$work/$suite.bad" "$work/$suite.plain.bad" >"$work/new"
    check "$suite: fails on hakmem only: $(head -n 20 "$work/new")" [ ! -s "$work/new" ]
    check "$suite: hakmem served" [ "$(counter "$suite" refills)" -gt 0 ]
    row=$suite${portion:+, a portion}
    if [ -n "$portion" ]; then
        echo "$row: \`$portion\`" | fold -s -w 98 | sed 's, *$,,' >"$state/$row.what"
    fi
    echo "| $row | $version | $passed_plain | $(wc -l <"$work/$suite.plain.bad") | $passed |" \
        "$(wc -l <"$work/$suite.bad") | $(date +%Y-%m-%d) | $library |" >"$state/$row.row"
    publish
}

publish() {
    {
        echo "# Test suites of other projects"
        echo
        echo "Written by \`./hak test --full\`: each suite on the system allocator and on hakmem."
        echo
        echo "| suite | version | passed | failed | passed on hakmem | failed | when | library |"
        echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
        for row in "$state"/*.row; do
            cut -d'|' -f2 "$row" >>"$work/names"
            cat "$row"
        done
        # Rows of suites that were not run here stay.
        grep '^|' "$root/docs/FOREIGN.md" | tail -n +3 | while IFS= read -r row; do
            grep -qxF "$(echo "$row" | cut -d'|' -f2)" "$work/names" || echo "$row"
        done
        for what in "$state"/*.what; do
            [ ! -e "$what" ] || { echo && cat "$what"; }
        done
    } >"$work/page"
    cp "$work/page" "$root/docs/FOREIGN.md"
}
