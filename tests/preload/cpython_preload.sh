# SPDX-License-Identifier: MIT
# CPython's own tests of json, re, threads, subprocess, multiprocessing and asyncio end on hakmem as
# they do without, with small objects from Python's own pools and with all of them from malloc. What
# fails without hakmem, too, is not hakmem's. If this fails, so does some Python program.
. "$(dirname "$0")/lib.sh"
needs python3
python=
for candidate in "$(python3 -c 'import sys; print(sys.executable)')" /usr/bin/python3; do
    [ -n "$python" ] || ! "$candidate" -c 'import test.test_json, test.libregrtest' 2>/dev/null ||
        python=$candidate
done
[ -n "$python" ] ||
    skip "no tests of CPython: their 25 MB are installed by ./hak test --full"

limit_s=1000
modules='test_json test_re test_thread test_subprocess'
chosen='-m *Json* -m *Decode* -m *Encode* -m test.test_re.* -m test_run* -m *pipe* -m *input*
    -m *Lock* -m *Thread* -m *start*'
if full; then
    modules="$modules test_threading test_threading_local test_asyncio test_gc test_queue
        test_concurrent_futures test_multiprocessing_fork test_multiprocessing_spawn"
    chosen=
fi

# What the tests ended with: one line a test, from the XML that regrtest writes.
cat >"$work/outcome.py" <<'END'
import sys
import xml.etree.ElementTree as tree

for case in tree.parse(sys.argv[1]).iter("testcase"):
    kinds = [kind for kind in ("error", "failure", "skipped") if case.find(kind) is not None]
    name = case.get("name").split()[0]
    print(case.get("classname") or "", name, case.get("status"), *kinds)
END

# outcome NAME PLACE MODULE...: its status is left aside; the outcomes tell more.
outcome() {
    name=$1
    place=$2
    shift 2
    # shellcheck disable=SC2086 # the patterns are words
    set -f
    $place "$name" "$python" -m test -j 4 --timeout 300 --junit-xml "$work/$name.xml" $chosen "$@"
    set +f
    check "$name: the tests left their outcome, $(tail -n 5 "$work/$name.err")" \
        [ -s "$work/$name.xml" ]
    "$python" "$work/outcome.py" "$work/$name.xml" | sort >"$work/$name.outcome"
    grep -E ' (error|failure)' "$work/$name.outcome" >"$work/$name.bad" || :
}

# as_well NAME: no test fails that does not fail plainly. Tests that wait for a time may fail on a
# busy machine: their modules get two more chances, and what fails three times fails.
as_well() {
    outcome "$1" preloaded $modules
    attempt=1
    while comm -23 "$work/$1.bad" "$work/plain.bad" >"$work/new" && [ -s "$work/new" ]; do
        echo "$1: fails on hakmem only, $attempt:"
        cat "$work/new"
        attempt=$((attempt + 1))
        [ $attempt -le 3 ] || fail "$1: tests fail on hakmem only"
        again=
        for module in $modules; do
            ! grep -q "$module\b" "$work/new" || again="$again $module"
        done
        outcome "$1.again" preloaded ${again:-$modules}
        comm -12 "$work/new" "$work/$1.again.bad" >"$work/$1.bad"
    done
    served "$1"
    equal "$1: as many tests ran" "$(wc -l <"$work/$1.outcome")" "$(wc -l <"$work/plain.outcome")"
    check "$1: all of its processes came to hakmem" [ "$(reports "$1")" -gt 10 ]
}

outcome plain plainly $modules
check "tests ran" [ "$(wc -l <"$work/plain.outcome")" -gt 150 ]
echo "$(wc -l <"$work/plain.outcome") tests, $(wc -l <"$work/plain.bad") fail without hakmem"
as_well pools
PYTHONMALLOC=malloc
export PYTHONMALLOC
as_well every_object
check "the option sent the small objects to hakmem" \
    [ "$(counter every_object refills)" -gt "$(counter pools refills)" ]
