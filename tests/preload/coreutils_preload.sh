# SPDX-License-Identifier: MIT
# The programs that every script calls: true, ls, sort (threads), tar, xz (threads), awk, find, sed.
# If this fails, a preload in /etc/ld.so.preload makes the machine unusable.
. "$(dirname "$0")/lib.sh"
needs ls sort tar xz awk find sed

# true may end without a single malloc.
plainly true /bin/true
preloaded true /bin/true
equal "true is true" "$(cat "$work/true.status")" 0
quiet true
same missing ls /nonexistent
equal "ls says that nothing is there" "$(cat "$work/missing.status")" 2

well ls ls -laR /usr/share/doc/libc6 /usr/lib/tmpfiles.d
well find find /etc -maxdepth 2 -name '*.conf'

awk 'BEGIN {
    for (state = i = 1; i <= 300000; i++)
        print state = (state * 1103515 + 12345) % 2147483647
}' >"$work/numbers"
well sort sort --parallel=4 -S 8M -n "$work/numbers"
well unique sort -u -S 1M -T "$work" "$work/numbers"
well sed sed -E 's/([0-9])([0-9]+)/\2\1/g' "$work/numbers"
well awk awk '{ count[$1 % 10007]++ }
END { for (i = 0; i < 10007; i++) sum += count[i] * i; print sum }' "$work/numbers"

well xz xz -c -1 -T 4 --block-size=256KiB "$work/numbers"
cp "$work/xz.out" "$work/numbers.xz"
well unxz xz -dc "$work/numbers.xz"
check "unpacked is what was packed" cmp "$work/unxz.out" "$work/numbers"

well tar tar -cf archive.tar --mtime=2001-01-01 --sort=name -C "$tests" .
check "the archives are equal" cmp "$work/plain/archive.tar" "$work/preloaded/archive.tar"
well pipe sh -c "tar -c -C '$tests' --mtime=2001-01-01 --sort=name . | gzip -9n | xz -T 2 | xz -d |
    gzip -d | sort --parallel=2 -S 2M | tac | sha256sum"
check "all of the pipe came to hakmem" [ "$(reports pipe)" -ge 8 ]
well untar tar -xvf archive.tar
check "what was unpacked is what was packed" cmp "$work/preloaded/lib.sh" "$tests/lib.sh"
