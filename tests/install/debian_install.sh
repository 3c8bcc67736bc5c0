# SPDX-License-Identifier: MIT
# The Debian packages are made from the release tarball, lintian has nothing to say, and in a copy
# of this machine's root they install, serve, build programs and leave without a trace. With --full
# also in a new root of this Debian with compilers alone.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/root.sh"
needs "$CMAKE" dpkg-buildpackage dh lintian pkg-config mandoc
limit_s=600

# The build is the packages' own.
unset CC CXX
full || export DEB_BUILD_OPTIONS=nocheck
quietly "$root/packaging/package.sh" deb "$work/package"
debs=$work/package/deb
equal "the packages" "$(cd "$debs" && ls *.deb | sed 's/_.*//' | sort | xargs)" \
    "hakmem-tools hakmem-tools-dbgsym libhakmem-dev libhakmem0 libhakmem0-dbgsym"
equal "lintian says" "$(lintian --allow-root --fail-on none "$debs"/*.changes 2>&1)" ""
for package in hakmem-tools libhakmem-dev libhakmem0; do
    dpkg-deb -c "$debs/${package}"_*.deb | awk '{ print $6 }' >"$work/$package.list"
    equal "$package: nothing outside of /usr" \
        "$(grep -v -x -e './' -e './usr/.*' "$work/$package.list")" ""
done
check "the library may be there for several architectures" \
    [ "$(dpkg-deb -f "$debs"/libhakmem0_*.deb Multi-Arch)" = same ]
for page in man1/hakmem.1.gz man3/hakmem.3.gz; do
    check "there is the page $page" grep -qh "$page" "$work"/*.list
done

can_mount || skip "the packages are right, but this one may not mount, and cannot install them"
in_root "" debian_inside.sh "$debs"

full || exit 0
command -v mmdebstrap >/dev/null || skip "no mmdebstrap"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mmdebstrap --quiet --variant=minbase --include=gcc,g++,cmake,make,pkg-config,man-db \
    "$suite" "$work/clean" >"$work/said" 2>&1 ||
    skip "no new root: $(tail -n 1 "$work/said")"
in_root "$work/clean" debian_inside.sh "$debs"
