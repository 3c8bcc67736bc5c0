# SPDX-License-Identifier: MIT
# The release tarball of a commit has the same bytes wherever it is made, and again when it is made
# from itself; it builds without git. What it installs, it uninstalls; and it says when the loader's
# cache must be told.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/root.sh"
needs "$CMAKE" ninja tar gzip git
[ -e "$root/.git" ] || skip "there is no commit here"
git clone -q "$root" "$work/first" 2>"$work/said" || skip "no clone: $(head -c 200 "$work/said")"
(umask 077 && git clone -q "$work/first" "$work/second")
touch -d 2001-01-01 "$work/second/README.md"
mkdir "$work/second/out" && echo built >"$work/second/out/file"
quietly "$work/first/packaging/package.sh" tarball "$work/first.made"
(umask 077 && quietly "$work/second/packaging/package.sh" tarball "$work/second.made")
tarball=$(echo "$work"/first.made/hakmem-*.tar.gz)
check "it is the same each time" cmp "$tarball" "$work/second.made/${tarball##*/}"
quietly "$work/first/packaging/package.sh" tarball "$work/first/made"
quietly "$work/first/packaging/package.sh" tarball "$work/first/made"
equal "there is no change of its own making" "$(cat "$work/said")" "$work/first/made/${tarball##*/}"
check "it does not hold itself" cmp "$tarball" "$work/first/made/${tarball##*/}"
equal "nothing else is left there" "$(ls -A "$work/first/made")" "${tarball##*/}"
equal "no owner has a name" "$(tar -tvzf "$tarball" | awk '{ print $2 }' | sort -u)" 0/0
tar -C "$work" -xzf "$tarball"
tree=$work/$(basename "$tarball" .tar.gz)

# From here on git fails.
mkdir "$work/bin"
printf '#!/bin/sh\necho git is asked: "$@" >&2\nexit 1\n' >"$work/bin/git"
chmod +x "$work/bin/git"
PATH=$work/bin:$PATH
quietly "$tree/packaging/package.sh" tarball "$work/third.made"
check "it makes itself again" cmp "$tarball" "$work/third.made/${tarball##*/}"
quietly "$tree/packaging/package.sh" tarball "$tree/made"
quietly "$tree/packaging/package.sh" tarball "$tree/made"
check "without itself" cmp "$tarball" "$tree/made/${tarball##*/}"
rm -r "$tree/made"
quietly "$CMAKE" -S "$tree" -B "$work/build" -G Ninja -DHAKMEM_FLAGS=-O0
quietly "$CMAKE" --build "$work/build"
silently "$CC" "$consumer/use.c" -o "$work/use" -pthread
serves built env LD_PRELOAD="$work/build/libhakmem.so" "$work/use"

DESTDIR=$work/stage
export DESTDIR
quietly "$CMAKE" --install "$work/build"
check "it is installed" [ -e "$DESTDIR/usr/local/bin/hakmem" ]
cp "$work/build/install_manifest.txt" "$work/manifest"
DESTDIR=$work/elsewhere
check "what is not there is not uninstalled" \
    sh -c "! '$CMAKE' --build '$work/build' --target uninstall >'$work/said' 2>&1"
check "which it says" grep -q "nothing is there" "$work/said"
check "and remembers" cmp "$work/build/install_manifest.txt" "$work/manifest"
DESTDIR=$work/stage
quietly "$CMAKE" --build "$work/build" --target uninstall
equal "nothing of it stays" "$(find "$DESTDIR" ! -type d -o -name hakmem)" ""
unset DESTDIR
check "nothing is uninstalled twice" \
    sh -c "! '$CMAKE' --build '$work/build' --target uninstall >'$work/said' 2>&1"
check "which it says" grep -q "nothing was installed" "$work/said"

can_mount || exit 0
in_root "" local_inside.sh "$work/build"
