# SPDX-License-Identifier: MIT
# /etc/hakmem.conf: settings of the machine, weaker than those of the program and of its user. If
# this fails, an administrator's settings are not heard, or a broken file there stops programs.
#
# The file of this machine is never touched: everything runs in a mount namespace of its own, whose
# /etc is a folder of this test.
. "$(dirname "$0")/lib.sh"
needs unshare mount ls

etc=$work/etc
mkdir "$etc"
private="unshare --map-root-user --mount"
$private mount --bind "$etc" /etc 2>/dev/null || skip "no private mount namespace is permitted"

# asked NAME SETTING...: runs ls with settings, where $etc is /etc; $work/NAME.said is what came on
# stderr.
asked() {
    name=$1
    shift
    status=0
    (cd / && exec timeout "$limit_s" $private sh -c 'mount --bind "$1" /etc && shift && exec "$@"' \
        sh "$etc" env "$@" LD_PRELOAD="$PRELOAD_LIB" ls /) \
        >"$work/$name.out" 2>"$work/$name.said" </dev/null || status=$?
    equal "$name: the program runs, $(head -c 300 "$work/$name.said")" "$status" 0
}
said() { cat "$work/$name.said"; }
value() { said | sed -n "s/^hakmem: $1=//p"; }
# says LINE: this line, and nothing else.
says() { equal "$name" "$(said)" "hakmem: $1"; }

asked absent PATH="$PATH"
equal "without a file nothing is said" "$(said)" ""

cat >"$etc/hakmem.conf" <<END
# settings of this machine
decay = 2s
retain = 3M   # and a remark
mode = minimal
foreign = forward
END
asked file HAKMEM_SHOW_CONF=1 HAKMEM_CONF=retain:4M HAKMEM_FOREIGN=abort
equal "the file is heard" "$(value decay)" "2000 (/etc/hakmem.conf)"
equal "the packed form wins over it" "$(value retain)" "4194304 (HAKMEM_CONF)"
equal "a variable wins over it" "$(value foreign)" "abort (environment)"
equal "a mode may stand there" "$(value mode)" "minimal (/etc/hakmem.conf)"
equal "and implies what nobody set" "$(value maintenance)" "off (mode)"
asked silent PATH="$PATH"
equal "a good file says nothing" "$(said)" ""
"$OUT/hakmem" --version >/dev/null 2>&1 && {
    asked listed PATH="$PATH" # for the name
    $private sh -c 'mount --bind "$1" /etc && exec "$2" options' sh "$etc" "$OUT/hakmem" \
        >"$work/options" || fail "hakmem options failed"
    check "hakmem options shows what the file says" \
        grep -qE '^decay +2s +/etc/hakmem.conf' "$work/options"
}

printf 'retain = 3M\ndecay = soon\n' >"$etc/hakmem.conf"
asked value PATH="$PATH"
says "/etc/hakmem.conf:2: decay: bad value 'soon', accepted: 0ms to never (units ms, s)"
printf 'colour = red\n' >"$etc/hakmem.conf"
asked name PATH="$PATH"
says "/etc/hakmem.conf:1: colour: there is no such option"
head -c 20000 /dev/zero | tr '\0' '#' >"$etc/hakmem.conf"
asked huge PATH="$PATH"
says "/etc/hakmem.conf: is larger than 16 KiB, ignored"
head -c 5000 "$PRELOAD_LIB" >"$etc/hakmem.conf"
asked binary PATH="$PATH"
says "/etc/hakmem.conf: is not text, ignored"
yes 'x = y' | head -n 2000 >"$etc/hakmem.conf"
asked hostile PATH="$PATH"
equal "a file full of mistakes is given up soon" "$(said | wc -l)" 9
check "and says so" grep -q 'too many errors, the rest is not read$' "$work/hostile.said"
rm "$etc/hakmem.conf"

mkdir "$etc/hakmem.conf"
asked folder PATH="$PATH"
says "/etc/hakmem.conf: is not a regular file, ignored"
rmdir "$etc/hakmem.conf"
mkfifo "$etc/hakmem.conf"
asked pipe PATH="$PATH"
says "/etc/hakmem.conf: is not a regular file, ignored"
rm "$etc/hakmem.conf"
ln -s hakmem.conf "$etc/hakmem.conf"
asked circle PATH="$PATH"
says "/etc/hakmem.conf: cannot be read, ignored"
rm "$etc/hakmem.conf"
ln -s /dev/zero "$etc/hakmem.conf"
asked endless PATH="$PATH"
says "/etc/hakmem.conf: is larger than 16 KiB, ignored"
rm "$etc/hakmem.conf"
ln -s /no/such/file "$etc/hakmem.conf"
asked dangling PATH="$PATH"
equal "a link to nothing is no file" "$(said)" ""
