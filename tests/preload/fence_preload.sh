# SPDX-License-Identifier: MIT
# Fence mode: misuse stops at the instruction, or at the free, with lines that tell what, where, and
# which thread allocated and freed the block; real programs and our own run in it as they do
# elsewhere, and go on where there are more blocks than mappings. If this fails, a search for a
# mistake finds none, or one of hakmem's.
. "$(dirname "$0")/lib.sh"
fence=$OUT/tests/preload_fence
segv=139
abrt=134

# hits WAY STATUS [SETTING...]: what it said is in $work/said.
hits() {
    way=$1
    wanted=$2
    shift 2
    told "$wanted" env HAKMEM_MODE=fence LD_PRELOAD="$PRELOAD_LIB" "$@" "$fence" "$way"
}
thread='by thread [0-9]+ \(preload_fence\)'
at='at /[^ ]*preload_fence\+0x[0-9a-f]+( < [^ ]*0x[0-9a-f]+)*'
pointer='pointer 0x[0-9a-f]+, block of 30 bytes'
around='this guarded block were overwritten, first at offset'

hits write-over $segv
says "overflow: $pointer, written 2 bytes behind its end $thread"
says "$at"
says "allocated $thread $at"
no_more
resolves put 2
resolves take_here 3
hits read-over $segv
says "overflow: $pointer, read 3 bytes behind its end $thread"
resolves get 2
hits write-over $segv HAKMEM_FENCE_ALIGNMENT=1
says "overflow: $pointer, written 2 bytes behind its end $thread"
hits copy-over $segv
says "overflow: $pointer, written 2 bytes behind its end $thread"
says "at /[^ ]*libc[^ ]*\+0x[0-9a-f]+ < ${at#at }"
hits copy-over $segv HAKMEM_FENCE_ALIGNMENT=1
says "overflow: $pointer, written 0 bytes behind its end $thread"
hits write-freed $segv
says "use after free: $pointer, written 3 bytes from its start $thread"
says "$at"
says "allocated $thread $at"
says "freed $thread $at"
no_more
resolves take_here 3
resolves give 4
hits read-freed $segv
says "use after free: $pointer, read 0 bytes from its start $thread"
hits by-thread $segv
says "use after free: $pointer, written 0 bytes from its start $thread"
says "$at"
says "allocated $thread $at"
says "freed by thread [0-9]+ \(worker\) $at"
no_more
hits twice $abrt
freed="a guarded block, already free, allocated $thread $at, freed $thread $at"
says "double free: $pointer, $freed"
no_more
hits inner $abrt
says "invalid free: $pointer, not the start of a guarded block, allocated $thread $at"
hits slack $abrt
says "overflow: $pointer, the bytes behind $around 31, allocated $thread $at"
hits slack $segv HAKMEM_FENCE_ALIGNMENT=1
hits under $abrt
says "underflow: $pointer, the bytes before $around -5, allocated $thread $at"
hits under $segv HAKMEM_FENCE_SIDE=start
says "underflow: $pointer, written 5 bytes before its start $thread"
hits in-child 0
says "use after free: $pointer, written 0 bytes from its start $thread"

# What is fenced only in part.
hits write-over 0 HAKMEM_FENCE=31
hits write-over $segv HAKMEM_FENCE=30
hits write-over $segv HAKMEM_FENCE=16..64
hits write-over 0 HAKMEM_FENCE=none
hits write-over $segv HAKMEM_FENCE=30 HAKMEM_MODE=balanced
hits write-over $segv
call=$(sed -n 's/^hakmem: allocated .* at \([^ ]*\).*/\1/p' "$work/said")
hits only-here $segv HAKMEM_FENCE="$call" HAKMEM_MODE=balanced
hits only-here $segv HAKMEM_FENCE="${call##*/}"

# More blocks than mappings: a sample of them, said once; what is free makes room again.
most=$(cat /proc/sys/vm/max_map_count)
hits many $segv
if [ "$most" -le 100000 ]; then
    says "fence: [0-9]+ blocks are fenced, and few of the kernel.s mappings .* a sample is fenced"
fi
says "use after free: $pointer, written 0 bytes from its start $thread"

# on NAME COMMAND...: says the same in fence mode as on the system's malloc.
on() {
    name=$1
    shift
    alike "$name" HAKMEM_MODE=fence "$@"
    equal "$name: nothing is reported" "$(grep hakmem: "$work/$name.err" | grep -v ' fence: ')" ""
    check "$name: blocks were fenced" [ "$(counter "$name" guarded_blocks)" -gt 100 ]
}
if command -v python3 >/dev/null; then
    cat >"$work/test_some.py" <<'END'
import collections, json, random, re, subprocess, sys, threading, unittest


class Some(unittest.TestCase):
    def test_json(self):
        value = {str(i): [i, str(i) * 20, None, {"a": i / 3}] for i in range(300)}
        self.assertEqual(json.loads(json.dumps(value)), value)

    def test_sort(self):
        numbers = list(range(2000))
        random.Random(1).shuffle(numbers)
        self.assertEqual(sorted(numbers), list(range(2000)))

    def test_words(self):
        words = re.findall(r"\w+", "the quick brown fox " * 500)
        self.assertEqual(collections.Counter(words)["fox"], 500)

    def test_threads(self):
        seen = []
        threads = [threading.Thread(target=lambda: seen.append(bytearray(5000)))
                   for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(seen), 20)

    def test_child(self):
        said = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True)
        self.assertEqual(said.stdout, b"42\n")
END
    on unittest sh -c "cd '$work' && python3 -m unittest test_some 2>&1 | sed 's/ in [0-9.]*s//'"
    equal "all tests passed" "$(tail -n 1 "$work/unittest.out")" OK
fi
if command -v perl >/dev/null; then
    # shellcheck disable=SC2016 # the variables are perl's
    on perl perl -e 'my %h; $h{$_ % 700} .= "x$_" for 1 .. 20000;
        print join(",", map { length $h{$_} } sort keys %h), "\n";
        my $s = "abc" x 3000; $s =~ s/b(c)/$1$1/g; print length $s, "\n"'
fi
if command -v git >/dev/null; then
    mkdir "$work/home"
    on git env HOME="$work/home" GIT_AUTHOR_NAME=n GIT_COMMITTER_NAME=n EMAIL=n@example.org \
        GIT_AUTHOR_DATE=2001-01-01T00:00:00Z GIT_COMMITTER_DATE=2001-01-01T00:00:00Z sh -c '
        set -eu
        git init -q -b trunk repository && cd repository
        for i in 1 2 3; do seq "$i" 2000 >file && git add . && git commit -q -m "$i"; done
        git log --stat --format="%H %s" && git diff HEAD~2 | git hash-object --stdin
        git gc -q && git fsck --strict --no-progress'
fi
if command -v sqlite3 >/dev/null; then
    on sqlite3 sqlite3 :memory: 'CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3000)
        INSERT INTO t SELECT x, "item " || x * 7919 % 3001 FROM n;
        CREATE INDEX i ON t(b); SELECT count(*), sum(a) FROM t;
        SELECT a, b FROM t WHERE b LIKE "item 99%" ORDER BY b LIMIT 9; PRAGMA integrity_check;'
fi
if command -v gcc >/dev/null; then
    cat >"$work/program.c" <<'END'
#include <stdio.h>
static int square(int x) { return x * x; }
int main(void) { for (int i = 0; i < 100; i++) printf("%d\n", square(i)); return 0; }
END
    on gcc gcc -O2 -S -o - "$work/program.c"
fi

own_programs HAKMEM_MODE=fence cpp early errno exec fork hakmem_new heaps life quiet stop
