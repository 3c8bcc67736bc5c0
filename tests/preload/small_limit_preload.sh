# SPDX-License-Identifier: MIT
# Little address space: set before the program starts, as batch systems do, or by the program for
# itself. If this fails, programs end with "memory exhausted" where they have three times what they
# need, or cannot start a thread after they limited themselves.
. "$(dirname "$0")/lib.sh"
needs bash ls prlimit python3 sort

# limited NAME MIB COMMAND...: the command has enough without hakmem, and with it.
limited() {
    name=$1
    limit_mib=$2
    shift 2
    plainly "$name" prlimit --as=$((limit_mib << 20)) "$@"
    equal "$name: $limit_mib MiB are enough for the program" "$(cat "$work/$name.plain.status")" 0
    preloaded "$name" prlimit --as=$((limit_mib << 20)) "$@"
    equal "$name ends well under $limit_mib MiB: $(head -c 300 "$work/$name.err")" \
        "$(cat "$work/$name.status")" 0
    quiet "$name"
    check "$name: stdout is the same" cmp -s "$work/$name.plain.out" "$work/$name.out"
    served "$name"
}

python=$(python3 -c 'import sys; print(sys.executable)')
seq 20000 -1 1 >"$work/numbers"
"$python" -c pass

for limit_mib in 24 32 48 64; do
    limited "ls_$limit_mib" $limit_mib ls /
    limited "bash_$limit_mib" $limit_mib bash -c 'for i in 1 2 3; do echo $i; done'
done
limited python_64 64 "$python" -S -c 'print(len([str(i) for i in range(10000)]))'
limited sort_128 128 sort --parallel=2 -n "$work/numbers"

# The program limits itself: threads, mappings and large objects have room, and no more than that.
cat >"$work/itself.py" <<'END'
import mmap, resource, threading
GIB = 1 << 30
resource.setrlimit(resource.RLIMIT_AS, (4 * GIB, 4 * GIB))
done = []
threads = [threading.Thread(target=lambda: done.append(len(bytes(100000)))) for i in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(done)
mmap.mmap(-1, 2 * GIB).close()
print(len(bytes(2 * GIB)))
for bytes_wished in 5 * GIB, 3 * GIB + GIB // 2:
    try:
        print(len(bytes(bytes_wished)))
    except MemoryError:
        print("refused")
held = [str(i) * 20 for i in range(100000)]
try:
    while True:
        held.append(bytes(64 << 20))
except MemoryError:
    print(len(held) - 100000 >= 56, len(held) - 100000 < 64)
held.clear()
mmap.mmap(-1, 3 * GIB).close()
print("mapped")
END
# With libc's malloc, too, the output shall not depend on how many threads are alive at once: each
# could take an arena of 64 MiB.
well itself env MALLOC_ARENA_MAX=2 "$python" "$work/itself.py"

# The shell limits itself and starts others.
cat >"$work/shell.sh" <<'END'
ulimit -v 200000
for i in $(seq 200); do
    names[i]=$(printf '%0200d' "$i")
done
echo "${#names[@]}"
ls -d /usr | sort
(ulimit -v 60000 && ls -d /)
echo "$(seq 3000 | wc -l)"
END
well shell bash "$work/shell.sh"
