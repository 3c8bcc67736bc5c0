# SPDX-License-Identifier: MIT
# The Python wheel in a clean virtual environment: its tag is what auditwheel finds it to be, its
# command serves Python programs, and its functions have the numbers.
. "$(dirname "$0")/lib.sh"
needs "$CMAKE" readelf
root=$(cd "$tests/../.." && pwd)
tools=$root/out/venv/bin
python=$tools/python
[ -x "$python" ] || python=python3
needs "$python"
"$python" -c 'import ensurepip, venv' 2>/dev/null || skip "no ensurepip"
unset PYTHONPATH PYTHONMALLOC PYTHONHOME
PATH=$(dirname "$CMAKE"):$PATH
HAKMEM_BUILD=$OUT
PIP_DISABLE_PIP_VERSION_CHECK=1
PYTHONDONTWRITEBYTECODE=1
export PATH HAKMEM_BUILD PIP_DISABLE_PIP_VERSION_CHECK PYTHONDONTWRITEBYTECODE

quietly "$python" -m venv "$work/env"
env=$work/env/bin
for time in first second; do
    quietly "$env/pip" wheel --no-deps --no-index -w "$work/$time" "$root/packaging/python"
done

# The list of what was installed, for uninstalling, is not the wheel's.
mkdir "$work/build"
ln -s "$OUT/libhakmem.so" "$work/build"
listed=$work/build/install_manifest.txt
sed "s,\"[^\"]*/\${CMAKE_INSTALL_MANIFEST}\",\"$listed\"," "$OUT/cmake_install.cmake" \
    >"$work/build/cmake_install.cmake"
quietly "$CMAKE" --install "$work/build" --prefix "$work/installed"
cp "$listed" "$work/listed"
backend() { (cd "$root/packaging/python" && "$python" -c "import backend; backend.$1"); }
HAKMEM_BUILD=$work/build quietly backend "built_files('$work/stage')"
check "the list of what was installed stays" cmp "$work/listed" "$listed"
rm "$listed"
HAKMEM_BUILD=$work/build quietly backend "built_files('$work/stage')"
check "and there is none where there was none" [ ! -e "$listed" ]
check "files of another libc have no tag" \
    sh -c '! "$@" 2>"$0"' "$work/said" env -C "$root/packaging/python" "$python" -c \
    "import backend; backend.platform_tag(['$OUT/hakmem.o'])"
equal "which one line says: $(cat "$work/said")" "$(grep -c 'for glibc only' "$work/said")" 1
equal "one line" "$(wc -l <"$work/said")" 1
unset HAKMEM_BUILD
wheel=$(echo "$work"/first/*.whl)
check "the wheel is the same each time" cmp "$wheel" "$work/second/${wheel##*/}"
tag=$(echo "$wheel" | sed 's/.*-\(manylinux[^-]*\)\.whl/\1/')
if [ -x "$tools/auditwheel" ]; then
    quietly "$tools/auditwheel" show "$wheel"
    check "auditwheel finds $tag: $(cat "$work/said")" \
        sh -c "tr -s ' \n' ' ' <'$work/said' | grep -q 'following platform tag: \"$tag\"'"
fi

quietly "$env/pip" install --no-index "$wheel"

# What is freed waits for the trim however busy the machine is, and every sample of a profile is
# taken, so that its sum is right within 2.4 % in the mean (500 blocks, sampled with 0.78 each).
HAKMEM_DECAY=60s
HAKMEM_HEAP_PROFILE_SAMPLES=0
export HAKMEM_DECAY HAKMEM_HEAP_PROFILE_SAMPLES
cat >"$work/app.py" <<'END'
import sys
import hakmem

if not hakmem.is_serving():
    sys.exit("not served")
before = hakmem.stats()
large = [bytes(100_000) for _ in range(500)]
during = hakmem.stats()
assert during["live_bytes"] > before["live_bytes"] + 40_000_000, during
del large
given = hakmem.trim()
after = hakmem.stats()
assert given > 20_000_000, given
assert after["returned_bytes"] >= before["returned_bytes"] + given, after
parts = hakmem.residency()
assert parts["resident_bytes"] >= parts["metadata_bytes"] > 0, parts

hakmem.start_profile(1 << 16)
held = [bytes(100_000) for _ in range(500)]
hakmem.stop_profile()
hakmem.profile("heap.pprof")
hakmem.profile("heap.folded", "folded")
with open("heap.folded", encoding="utf-8") as file:
    total = sum(int(line.rsplit(" ", 1)[1]) for line in file)
assert 40_000_000 < total < 60_000_000, total
try:
    hakmem.profile("heap.none", "none")
except ValueError:
    pass
else:
    sys.exit("a form that does not exist")
sys.exit(7 if sys.argv[1:] == ["ends"] else 0)
END

# run STATUS COMMAND...: it ends so and says nothing.
run() {
    expected=$1
    shift
    status=0
    (cd "$work" && exec timeout "$limit_s" "$@") </dev/null >"$work/run.out" 2>&1 || status=$?
    equal "$*: $(tail -n 3 "$work/run.out")" "$status" "$expected"
}
run 0 "$env/python" -m hakmem run app.py
run 7 "$env/python" -m hakmem run app.py ends
run 7 "$env/hakmem" run --mode fast -o decay=90s app.py ends
run 7 "$env/hakmem" run -m app ends
run 7 "$env/hakmem" run -- "$env/python" app.py ends
run 7 env LD_PRELOAD="$("$env/python" -c 'import hakmem; print(hakmem.library())')" \
    "$env/python" app.py ends
run 0 "$env/hakmem" profile heap.pprof
check "the command reads the profile: $(head -n 3 "$work/run.out")" \
    grep -qE '^ *[3-6][0-9](\.[0-9])? ?Mi?B?' "$work/run.out"
run 0 "$env/hakmem" run true
run 0 "$env/hakmem" run --bounds -c 'import os
assert "libhakmem-bounds.so" in os.environ["LD_PRELOAD"]'
run 0 "$env/hakmem" options
large_blocks=0 # which this program has none of
serves served "$env/hakmem" run "$work/app.py"

run 1 "$env/python" app.py
equal "a process without hakmem is told so" "$(cat "$work/run.out")" "not served"
run 1 "$env/python" -c 'import hakmem; hakmem.stats()'
check "and what to do" grep -q 'python -m hakmem run' "$work/run.out"

# Python's own allocator takes most small objects before malloc sees them.
run 0 "$env/python" -m hakmem run -c 'import hakmem
a = hakmem.stats()["live_bytes"]; b = list(map(float, range(200_000)))
assert hakmem.stats()["live_bytes"] - a < 3_000_000'
run 0 env PYTHONMALLOC=malloc "$env/python" -m hakmem run -c 'import hakmem
a = hakmem.stats()["live_bytes"]; b = list(map(float, range(200_000)))
assert hakmem.stats()["live_bytes"] - a > 4_000_000'

quietly "$env/pip" uninstall -y hakmem
equal "nothing stays" "$(find "$work/env" -name '*hakmem*')" ""
