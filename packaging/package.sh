#!/bin/sh
# package.sh KIND [FOLDER]: makes a package of this tree in FOLDER (out/package).
#   tarball   the sources as hakmem-VERSION.tar.gz: of one commit always the same bytes
#   deb       the Debian packages, built from the tarball, in FOLDER/deb
#   rpm       the RPM packages, built from the tarball, in FOLDER/rpm
#   alpine    the tarball, and the APKBUILD with its checksum, in FOLDER/alpine
set -eu
kind=${1:-}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${2:-$root/out/package}"
folder=$(cd "${2:-$root/out/package}" && pwd)
cd "$root"
LC_ALL=C
export LC_ALL
version=$(sed -n 's/^project(hakmem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tree=hakmem-$version
tarball=$folder/$tree.tar.gz
within=${folder#"$root"/}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

say() { echo "package: $*" >&2; }

# The files of the tree, each ended by a zero byte: what git knows or would add, else all but what
# was built; not what is new in $folder.
sources() {
    if [ -e .git ]; then
        git ls-files -z --cached --others --exclude-standard --exclude="/$within/" |
            xargs -0 sh -c \
                'for file; do if [ -e "$file" ]; then printf "%s\0" "$file"; fi; done' sh
    else
        find . \( -path ./out -o -path "./$within" -o -name __pycache__ \
            -o -path ./packaging/rust/target \) -prune -o \
            ! -type d ! -path ./packaging/rust/Cargo.lock -printf '%P\0'
    fi | sort -zu
}

# The time of the commit; in an unpacked tarball, that of its files.
seconds() {
    if [ -e .git ]; then
        git log -1 --format=%ct
    else
        stat -c %Y CMakeLists.txt
    fi
}

make_tarball() {
    [ ! -e .git ] || [ -z "$(git status --porcelain | grep -vxF "?? $within/")" ] ||
        say "the tarball has changes that no commit has"
    sources >"$work/sources"
    [ -s "$work/sources" ] || { say "git lists no files"; exit 1; }
    tar --create --format=ustar --transform="s,^,$tree/,S" --owner=0 --group=0 --numeric-owner \
        --mode=u=rwX,go=rX --mtime="@$(seconds)" --file="$work/tar" \
        --no-recursion --null --verbatim-files-from --files-from="$work/sources"
    gzip -9nc "$work/tar" >"$work/tar.gz"
    mv "$work/tar.gz" "$tarball"
}

make_deb() {
    make_tarball
    deb=$folder/deb
    rm -rf "$deb"
    mkdir "$deb"
    mv "$tarball" "$deb/hakmem_$version.orig.tar.gz"
    tar -C "$deb" -xzf "$deb/hakmem_$version.orig.tar.gz"
    cp -r "$deb/$tree/packaging/debian" "$deb/$tree/debian"
    (cd "$deb/$tree" && dpkg-buildpackage -us -uc) >"$deb/build.log" 2>&1 ||
        { tail -n 40 "$deb/build.log" >&2; say "see $deb/build.log"; exit 1; }
    rm -r "${deb:?}/$tree" "$deb/build.log"
}

# Where the distribution has other names for what is needed, rpm cannot know that it is there.
make_rpm() {
    make_tarball
    rpm=$folder/rpm
    rm -rf "$rpm"
    mkdir "$rpm"
    nodeps=--nodeps
    ! rpm -q gcc >/dev/null 2>&1 || nodeps=
    rpmbuild -bb $nodeps ${HAK_RPM_OPTIONS:-} --define "_topdir $rpm/build" \
        --define "_sourcedir $folder" packaging/rpm/hakmem.spec >"$rpm/build.log" 2>&1 ||
        { tail -n 40 "$rpm/build.log" >&2; say "see $rpm/build.log"; exit 1; }
    mv "$rpm"/build/RPMS/*/*.rpm "$rpm"
    rm -r "$rpm/build" "$rpm/build.log" "$tarball"
}

make_alpine() {
    make_tarball
    alpine=$folder/alpine
    rm -rf "$alpine"
    mkdir "$alpine"
    mv "$tarball" "$alpine"
    {
        cat packaging/alpine/APKBUILD
        printf '\nsha512sums="\n%s\n"\n' "$(cd "$alpine" && sha512sum "$tree.tar.gz")"
    } >"$alpine/APKBUILD"
}

case $kind in
tarball)
    make_tarball
    echo "$tarball" ;;
deb)
    make_deb
    ls "$deb"/*.deb ;;
rpm)
    make_rpm
    ls "$rpm"/*.rpm ;;
alpine)
    make_alpine
    ls "$alpine/APKBUILD" ;;
*)
    say "there is no package '$kind': tarball, deb, rpm or alpine"
    exit 2 ;;
esac
