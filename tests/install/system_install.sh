# SPDX-License-Identifier: MIT
# hakmem serves every program of a system by /etc/ld.so.preload; those with raised privileges do not
# listen to their caller's environment. If this fails, a machine with that file does not boot, or
# anyone may have a setuid program append to files that are not theirs.
#
# The file is written into a copy of /etc, which a mount namespace of its own puts in place: nothing
# else on this machine sees it.
. "$(dirname "$0")/lib.sh"
needs unshare mount setpriv "$CC"
[ "$(id -u)" = 0 ] || skip "only root may mount"
unshare -m true 2>/dev/null || skip "no mount namespaces here"

library=$PRELOAD_LIB
mkdir "$work/etc" "$work/open"
cp -a /etc/. "$work/etc" 2>/dev/null || true
echo "$library" >"$work/etc/ld.so.preload"
chmod 755 "$work" "$work/etc"
chmod 777 "$work/open"
unshare -m mount --bind "$work/etc" /etc 2>/dev/null || skip "no bind mounts here"
before=$(cat /etc/ld.so.preload 2>/dev/null || true)

# inside COMMAND...: where the file is.
cat >"$work/inside" <<'END'
#!/bin/sh
etc=$1
shift
mount --bind "$etc" /etc && exec "$@"
END
chmod 755 "$work/inside"

silently "$CC" "$consumer/use.c" -o "$work/use" -pthread
silently "$CC" -static "$consumer/use.c" -o "$work/use_static" -pthread
silently "$CC" "$tests/aid/whose.c" -o "$work/whose" -ldl
equal "outside it is libc's" "$("$work/whose" | sed 's/-.*//; s/\.so.*//')" libc
equal "inside it is hakmem's" "$(unshare -m "$work/inside" "$work/etc" "$work/whose")" \
    "${library##*/}"
serves threads unshare -m "$work/inside" "$work/etc" "$work/use"

# Programs that every system runs, each in its own way, many processes deep.
unshare -m "$work/inside" "$work/etc" sh -c 'ls -lR /etc | sort | uniq -c | tail -n 1 && id && ps' \
    >"$work/said" 2>&1 </dev/null || [ -s "$work/said" ] || fail "a shell does not run"
check "no program complains: $(grep -i -m1 -e hakmem: -e 'error: ld\.so' "$work/said")" \
    sh -c "! grep -qi -e 'hakmem:' -e 'error: ld[.]so' '$work/said'"
unshare -m "$work/inside" "$work/etc" "$work/use_static" || fail "a static program does not run"

case $(findmnt -n -o OPTIONS -T "$work" 2>/dev/null) in
*nosuid*) skip "no setuid programs in ${TMPDIR:-/tmp}" ;;
esac
cp "$work/whose" "$work/privileged"
chown daemon "$work/privileged" && chmod 4755 "$work/privileged" || skip "chown is not possible"
# as_nobody NAME PROGRAM: everything asked of hakmem by the environment.
as_nobody() {
    status=0
    unshare -m "$work/inside" "$work/etc" setpriv --reuid=nobody --regid=nogroup --clear-groups \
        env HAKMEM_SHOW_CONF=1 HAKMEM_BOGUS=1 HAKMEM_STATS=raw \
        HAKMEM_STATS_FILE="$work/open/$1" "$2" >"$work/$1.out" 2>"$work/$1.err" || status=$?
    equal "$1: ends well" "$status" 0
    equal "$1: has hakmem's malloc" "$(cat "$work/$1.out")" "${library##*/}"
}
as_nobody ordinary "$work/whose"
check "an ordinary program listens" [ -s "$work/ordinary.err" -a -s "$work/open/ordinary" ]
as_nobody privileged "$work/privileged"
equal "a privileged one does not" "$(cat "$work/privileged.err")" ""
check "it wrote no file" [ ! -e "$work/open/privileged" ]

after=$(cat /etc/ld.so.preload 2>/dev/null || true)
equal "the machine's own file is as it was" "$after" "$before"
