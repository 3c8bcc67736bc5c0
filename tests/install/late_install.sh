# SPDX-License-Identifier: MIT
# The library is loaded late, by a plug-in host for one: after libraries that used up most of the
# room for static thread storage, locally, with RTLD_DEEPBIND, again and again; and it stands beside
# a malloc that the program brings along. If this fails, a program dies of "cannot allocate memory
# in static TLS block", or when it unloads a plug-in.
. "$(dirname "$0")/lib.sh"
needs "$CC"
installed
library=$prefix/lib/libhakmem.so

# Thread storage with a fixed place, as the library's own, and with a place found at run time.
tls=
for i in 1 2 3 4 5 6 7 8 9 10; do
    silently "$CC" -shared -fPIC -DTLS='"initial-exec"' -DTLS_BYTES=100 "$tests/aid/tls.c" \
        -o "$work/fixed$i.so"
    silently "$CC" -shared -fPIC -DTLS='"global-dynamic"' -DTLS_BYTES=10000 "$tests/aid/tls.c" \
        -o "$work/found$i.so"
    tls="$tls $work/found$i.so $work/fixed$i.so"
done
silently "$CC" "$tests/aid/late.c" -o "$work/late" -pthread -ldl
for first in 0 1 2; do
    name=late$first
    status=0
    env LATE_FIRST_FLAGS=$first HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/$name.stats" \
        timeout "$limit_s" "$work/late" "$library" $tls >"$work/$name.out" 2>&1 || status=$?
    equal "$name: ends well, $(cat "$work/$name.out")" "$status" 0
    equal "$name: the program's blocks were counted" "$(counter "$name" foreign_frees)" 100
    equal "$name: and left alone" "$(counter "$name" fallback)" 0
    check "$name: threads were served" [ "$(counter "$name" threads_started)" -ge 2 ]
done

# What it takes of the room for static thread storage, 1664 bytes in glibc for all libraries.
bytes=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
check "thread storage of $bytes bytes" [ "$((bytes))" -gt 0 -a "$((bytes))" -le 128 ]

silently "$CC" -fno-builtin "$tests/aid/own.c" -o "$work/own" -pthread
plainly own "$work/own"
equal "a program with its own malloc ends well" "$(cat "$work/own.plain.status")" 0
preloaded own "$work/own"
equal "and beside hakmem, too, $(cat "$work/own.err")" "$(cat "$work/own.status")" 0
equal "which serves nothing" "$(counter own refills)" 0
silently "$CC" "$tests/aid/own.c" -fno-builtin -o "$work/own_linked" -pthread \
    -L"$prefix/lib" -Wl,--no-as-needed -lhakmem -Wl,-rpath,"$prefix/lib"
preloaded own_linked "$work/own_linked"
equal "and linked with it" "$(cat "$work/own_linked.status")" 0
