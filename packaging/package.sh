#!/bin/sh
# package.sh KIND [FOLDER]: makes a package of this tree in FOLDER (out/package).
#   tarball   the sources as hakmem-VERSION.tar.gz: of one commit always the same bytes
#   deb       the Debian packages, built from the tarball, in FOLDER/deb
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

say() { echo "package: $*" >&2; }

# The files of the tree, each ended by a zero byte: what git knows or would add, else all but what
# was built.
sources() {
    if [ -e .git ]; then
        git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c \
            'for file; do if [ -e "$file" ]; then printf "%s\0" "$file"; fi; done' sh
    else
        find . \( -path ./out -o -name __pycache__ -o -path ./packaging/rust/target \) -prune -o \
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
    [ ! -e .git ] || [ -z "$(git status --porcelain)" ] ||
        say "the tarball has changes that no commit has"
    sources >"$folder/.sources"
    [ -s "$folder/.sources" ] || { say "git lists no files"; exit 1; }
    tar --create --format=ustar --transform="s,^,$tree/,S" --owner=0 --group=0 --numeric-owner \
        --mode=u=rwX,go=rX --mtime="@$(seconds)" --file="$folder/.tar" \
        --no-recursion --null --verbatim-files-from --files-from="$folder/.sources"
    gzip -9nc "$folder/.tar" >"$folder/.tar.gz"
    mv "$folder/.tar.gz" "$tarball"
    rm "$folder/.sources" "$folder/.tar"
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

case $kind in
tarball)
    make_tarball
    echo "$tarball" ;;
deb)
    make_deb
    ls "$deb"/*.deb ;;
*)
    say "there is no package '$kind': tarball or deb"
    exit 2 ;;
esac
