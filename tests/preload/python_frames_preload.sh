# SPDX-License-Identifier: MIT
# tests/preload/python_frames_preload.sh - which functions of a Python program hold its memory.
# CPython tells perf of its functions from 3.12 on; older ones show the interpreter's own functions.
. "$(dirname "$0")/lib.sh"
python=
for one in python3 python3.12 python3.13 python3.14 \
    "${HOME:-}"/.pyenv/versions/3.1[2-9].*/bin/python3; do
    if "$one" -X perf -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
        python=$one
        break
    fi
done
[ -n "$python" ] || skip "no Python with -X perf (3.12)"
cat >"$work/service.py" <<'P'
import sys

kept = []


def hold_much():
    for _ in range(4000):
        kept.append(bytearray(2000))


def hold_little():
    for _ in range(1000):
        kept.append(bytearray(2000))


def serve():
    hold_much()
    hold_little()


serve()
print("ready", flush=True)
sys.stdin.read()
P
mkfifo "$work/in"
# Most blocks are samples; with 256 bytes the start of Python alone filled the table of stacks.
PYTHONMALLOC=malloc HAKMEM_HEAP_PROFILE=on HAKMEM_HEAP_PROFILE_RATE=1024 \
    HAKMEM_HEAP_PROFILE_SAMPLES=0 LD_PRELOAD="$PRELOAD_LIB" \
    "$python" -X perf "$work/service.py" <"$work/in" >"$work/said" &
pid=$!
exec 7>"$work/in"
becomes "the program is ready" grep -q ready "$work/said"
"$OUT/hakmem" profile "$pid" >"$work/table" || fail "the profile of $pid"
"$OUT/hakmem" profile "$pid" --folded >"$work/folded" || fail "the profile of $pid"
exec 7>&-
wait "$pid" || fail "the program ends well"
rm -f "/tmp/perf-$pid.map"
check "8 MB are held by hold_much" \
    grep -qE '^ +[78]\.[0-9] MiB .*  py::hold_much  service\.py$' "$work/table"
check "2 MB are held by hold_little" \
    grep -qE '^ +(1\.[89]|2\.[01]) MiB .*  py::hold_little  service\.py$' "$work/table"
check "its callers are functions of Python" grep -qE '^ +< py::serve < py::<module>' "$work/table"
bytes=$(awk '/^_start;.*;py::<module>;.*;py::serve;.*;py::hold_much;/ { sum += $NF }
    END { print sum + 0 }' "$work/folded")
check "stacks are whole: $bytes bytes" [ "$bytes" -gt 7200000 ]
