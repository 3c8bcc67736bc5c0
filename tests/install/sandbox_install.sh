# SPDX-License-Identifier: MIT
# A program that has allocated confines itself with a filter that kills for every other call than
# malloc's own or those of OpenSSH's sandbox, and goes on: sizes small and large, threads, realloc,
# frees, malloc_trim, times without work. Then the same without /proc and /sys. If this fails,
# sandboxed programs die of SIGSYS in malloc, and chroots without /proc misbehave.
. "$(dirname "$0")/lib.sh"
needs "$CC"
installed
lists='allocator openssh'
sizes='1 8 40 100 1000'

silently "$CC" -O1 "$tests/aid/sandboxed.c" -o "$work/plain_one" -pthread
silently "$CC" -O1 "$prefix/lib/hakmem.o" "$tests/aid/sandboxed.c" -o "$work/linked_one" -pthread
quietly "$CC" -O1 -static "$prefix/lib/hakmem.o" "$tests/aid/sandboxed.c" -o "$work/static_one" \
    -pthread # the linker warns of dlopen

# lives NAME COMMAND...: ends well and says nothing.
lives() {
    name=$1
    shift
    status=0
    timeout "$limit_s" env HAKMEM_DECAY=100ms "$@" >"$work/said" 2>&1 </dev/null || status=$?
    [ "$status" != 77 ] || skip "$name: no such filter here"
    equal "$name: ends well (159: killed by the filter)" "$status" 0
    equal "$name: says nothing" "$(head -c 300 "$work/said")" ""
}

lives "libc's malloc, prctl" "$work/plain_one" prctl allocator 8 4
lives "libc's malloc, all threads" "$work/plain_one" seccomp openssh 8 4
for list in $lists; do
    for mib in $sizes; do
        lives "$list: one thread, $mib MiB" \
            env LD_PRELOAD="$PRELOAD_LIB" "$work/plain_one" prctl $list $mib 0
        lives "$list: all of five threads, $mib MiB" \
            env LD_PRELOAD="$PRELOAD_LIB" "$work/plain_one" seccomp $list $mib 4
    done
    for program in linked_one static_one; do
        lives "$list: $program, prctl" "$work/$program" prctl $list 100 0
        lives "$list: $program, all threads" "$work/$program" seccomp $list 100 4
    done
    lives "$list: without the thread of hakmem's own" env LD_PRELOAD="$PRELOAD_LIB" \
        HAKMEM_MAINTENANCE=off "$work/plain_one" seccomp $list 100 4
    lives "$list: hardened" env LD_PRELOAD="$PRELOAD_LIB" HAKMEM_MODE=hardened \
        "$work/plain_one" seccomp $list 40 4
    for how in prctl seccomp; do
        lives "$list: refused by the limit, $how" env LD_PRELOAD="$PRELOAD_LIB" HAKMEM_LIMIT=200M \
            REFUSED_MIB=300 "$work/plain_one" $how $list 40 4
    done
    [ ! -e /lib/"$(uname -m)"-linux-gnu/libseccomp.so.2 ] ||
        lives "$list: by libseccomp" env LD_PRELOAD="$PRELOAD_LIB" \
            "$work/plain_one" library $list 100 0
done

# Without /proc and /sys.
unshare -m true 2>/dev/null || exit 0
cat >"$work/bare" <<'END'
#!/bin/sh
mount -t tmpfs none /sys && mount -t tmpfs none /proc || exit 77
exec "$@"
END
chmod +x "$work/bare"
for mib in $sizes; do
    for how in none seccomp; do
        lives "no /proc, $how, $mib MiB" \
            unshare -m "$work/bare" env LD_PRELOAD="$PRELOAD_LIB" \
            "$work/plain_one" $how openssh $mib 4
    done
done
lives "no /proc, statistics" unshare -m "$work/bare" env LD_PRELOAD="$PRELOAD_LIB" \
    HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/bare.stats" "$work/plain_one" none openssh 100 4
served bare
