# SPDX-License-Identifier: MIT
# tests/install/root.sh - sourced after lib.sh: roots that a script may change. All mounts are in a
# namespace of their own and end with it.

root=$(cd "$tests/../.." && pwd)

can_mount() {
    [ "$(id -u)" = 0 ] && unshare -m sh -c 'mount -t tmpfs none "$1" && mkdir "$1/u" "$1/w" &&
        mount -t overlay overlay -o "lowerdir=/,upperdir=$1/u,workdir=$1/w" /mnt' sh "$work/plain" \
        >/dev/null 2>&1
}

cat >"$work/enter" <<'END_OF_ENTER'
#!/bin/sh
# enter NEW_ROOT FOLDERS SCRIPT ARGUMENTS...: without NEW_ROOT, a copy of this machine's; folders
# are there, too.
set -eu
new=$1
folders=$2
shift 2
if [ -z "$new" ]; then
    new=$(mktemp -d "$(dirname "$0")/over.XXXXXX")
    mount -t tmpfs none "$new"
    mkdir "$new/upper" "$new/work" "$new/root"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$new/upper,workdir=$new/work" "$new/root"
    changed=$new/upper
    new=$new/root
    mount --bind "$changed" "$new/mnt"
    CHANGED=/mnt
    export CHANGED
fi
for folder in $folders; do
    mkdir -p "$new$folder"
    mount --bind "$folder" "$new$folder"
done
mount --rbind /dev "$new/dev"
mount -t proc none "$new/proc"
exec chroot "$new" /bin/sh "$@"
END_OF_ENTER
chmod +x "$work/enter"

# in_root NEW_ROOT SCRIPT ARGUMENTS...: runs a script of this folder there. Its checks are ours.
in_root() {
    new=$1
    inside=$tests/$2
    shift 2
    check_count=$((check_count + 1))
    (cd / && unshare -mp --fork "$work/enter" "$new" "$root $work" "$inside" "$@") ||
        fail "${inside##*/} failed in ${new:-a copy of this root}"
}

# everything: what a package manager does not keep for itself, by name.
everything() {
    find /etc /opt /srv /usr /var /lib/systemd -xdev \
        \( -path /var/lib/dpkg -o -path /var/cache -o -path /var/log \) -prune -o -print \
        2>/dev/null |
        sort
}

# differs BEFORE AFTER: lines of diff. In a copy of the machine's root others may make and remove
# files meanwhile: $CHANGED has what was made in the copy, and a device for what was removed there.
differs() {
    diff "$1" "$2" | sed -n '/^[<>] /p' | while read -r sign path; do
        [ -z "${CHANGED:-}" ] || [ -e "$CHANGED$path" ] || [ -L "$CHANGED$path" ] || continue
        echo "$sign $path"
    done
}
