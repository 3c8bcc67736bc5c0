# SPDX-License-Identifier: MIT
# The packages of other distributions: each has this version, and is made from the release tarball;
# a CMake project can use those for development without the archive's. With --full the RPM packages
# are built and what is in them serves, and so is what the functions of the APKBUILD make with musl,
# and what the Nix expression configures.
. "$(dirname "$0")/lib.sh"
needs "$CMAKE" ninja git gzip sha512sum
root=$(cd "$tests/../.." && pwd)
packaging=$root/packaging
limit_s=600
version=$(sed -n 's/^project(hakmem VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
full() { [ -n "${HAK_FULL:-}" ]; }
quietly "$packaging/package.sh" alpine "$work/package"
alpine=$work/package/alpine
tar -C "$work" -xzf "$alpine/hakmem-$version.tar.gz"
tree=$work/hakmem-$version

# Alpine: a script of functions, which abuild calls with these variables.
check "the APKBUILD is a script" sh -n "$alpine/APKBUILD"
variable() { (srcdir=$work && . "$alpine/APKBUILD" && eval "printf '%s' \"\$$1\""); }
equal "the APKBUILD's version" "$(variable pkgver)" "$version"
variable sha512sums | sed '/^$/d' >"$work/sums"
equal "its source" "$(sed 's/.* //' "$work/sums")" "$(variable source)"
(cd "$alpine" && quietly sha512sum -c "$work/sums")
for name in static libs dev; do
    check "$name is among its packages" sh -c "echo '$(variable subpackages)' | grep -q -- '-$name'"
done

# What abuild has: the folders of a package, and functions that move files to its own.
cat >"$work/abuild.sh" <<'END'
# abuild.sh SOURCES PACKAGE APKBUILD STEP...
set -eu
default_dev() { amove usr/include usr/lib/pkgconfig usr/lib/cmake usr/lib/libhakmem.so; }
default_static() { amove 'usr/lib/*.a'; }
amove() {
    for pattern; do
        for file in "$pkgdir"/$pattern; do
            mkdir -p "$subpkgdir/$(dirname "${file#"$pkgdir"/}")"
            mv "$file" "$subpkgdir/$(dirname "${file#"$pkgdir"/}")"
        done
    done
}
srcdir=$1 pkgdir=$2
. "$3"
shift 3
for step; do
    subpkgdir=$pkgdir-$step
    (cd "$srcdir" && $step)
done
END

# uses FOLDER...: a CMake project builds with what these packages hold, without the archive's.
uses() {
    mkdir "$work/used"
    for packed; do
        cp -a "$packed/." "$work/used"
    done
    quietly "$CMAKE" -S "$consumer" -B "$work/used.build" -G Ninja -DKINDS=shared \
        -DCMAKE_PREFIX_PATH="$work/used/usr" -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX"
    quietly "$CMAKE" --build "$work/used.build"
    serves used "$work/used.build/c_shared"
    rm -r "$work/used" "$work/used.build"
}
DESTDIR=$work/divided quietly "$CMAKE" --install "$OUT" --prefix /usr
quietly sh "$work/abuild.sh" "$work" "$work/divided" "$alpine/APKBUILD" static dev libs
check "the archive has a package" [ -e "$work/divided-static/usr/lib/libhakmem.a" ]
uses "$work/divided-dev" "$work/divided-libs"

# RPM: what the macros leave.
equal "the spec's version" "$(sed -n 's/^Version: *//p' "$packaging/rpm/hakmem.spec")" "$version"
! command -v rpmspec >/dev/null ||
    equal "its packages" "$(rpmspec -q --qf '%{name}=%{version} ' "$packaging/rpm/hakmem.spec")" \
        "hakmem=$version hakmem-libs=$version hakmem-devel=$version hakmem-static=$version "

# Nix: the expression, with names instead of packages.
cat >"$work/names.nix" <<'END'
file: import file {
  lib = {
    cleanSource = path: toString path;
    cleanSourceWith = { src, filter }: map (name: filter name "directory") [ "/a/src" "/a/out" ];
    licenses.mit = "MIT";
  };
  stdenv.mkDerivation = attributes: attributes;
  cmake = "cmake"; elfutils = "elfutils"; libiberty = "libiberty"; ninja = "ninja";
  protobufc = "protobufc"; zlib = "zlib";
}
END
nix() { # ATTRIBUTE: its value as JSON
    HOME=$work nix-instantiate --store dummy:// --eval --strict --json -E \
        "(import $work/names.nix $packaging/nix/hakmem.nix).$1" 2>"$work/said"
}
if command -v nix-instantiate >/dev/null; then
    quietly nix-instantiate --store dummy:// --parse "$packaging/nix/default.nix"
    equal "the expression's version $(cat "$work/said")" "$(nix version)" "\"$version\""
    equal "what was built is no source" "$(nix src)" "[true,false]"
else
    equal "the expression's version" "$(sed -n 's/^  version = "\(.*\)";/\1/p' \
        "$packaging/nix/hakmem.nix")" "$version"
fi
full || exit 0

quietly "$CC" "$consumer/use.c" -o "$work/use" -pthread
export HAK_RPM_OPTIONS="--without check"
if command -v rpmbuild >/dev/null; then
    quietly "$packaging/package.sh" rpm "$work/package"
    mkdir "$work/rpm"
    for package in "$work"/package/rpm/*.rpm; do
        rpm2archive - <"$package" | tar -C "$work/rpm" -xz
        name=${package##*/}
        mkdir "$work/rpm.${name%%-[0-9]*}"
        rpm2archive - <"$package" | tar -C "$work/rpm.${name%%-[0-9]*}" -xz
    done
    uses "$work/rpm.hakmem-devel" "$work/rpm.hakmem-libs"
    serves rpm "$work/rpm/usr/bin/hakmem" run --strict "$work/use"
fi

if command -v nix-instantiate >/dev/null; then
    flags=$(nix cmakeFlags | tr -d '[]"' | tr ',' ' ')
    # shellcheck disable=SC2086
    quietly "$CMAKE" -S "$tree" -B "$work/nix" -G Ninja -DCMAKE_INSTALL_PREFIX="$work/nix.out" \
        -DCMAKE_INSTALL_LIBDIR="$work/nix.out/lib" -DCMAKE_BUILD_TYPE=None $flags
    quietly "$CMAKE" --build "$work/nix"
    quietly "$CMAKE" --install "$work/nix"
    out=$work/nix.out
    export out
    quietly sh -ec "$(nix installCheckPhase | sed 's/^"\(.*\)\\n"$/\1/')"
    equal "its command runs itself" "$(cat "$work/said")" "hakmem $version"
fi

command -v musl-gcc >/dev/null || exit 0
CMAKE_TOOLCHAIN_FILE=$root/cmake/musl.cmake quietly sh "$work/abuild.sh" "$work" "$work/apk" \
    "$alpine/APKBUILD" build check package static dev libs
for file in apk/usr/bin/hakmem apk-libs/usr/lib/libhakmem.so.0 apk-dev/usr/lib/hakmem.o \
    apk-dev/usr/include/hakmem/hakmem.h apk-static/usr/lib/libhakmem.a \
    apk/usr/share/man/man1/hakmem.1; do
    check "there is $file" [ -e "$work/$file" ]
done
quietly musl-gcc -o "$work/musl_use" "$consumer/use.c" -pthread
serves musl env LD_PRELOAD="$work/apk-libs/usr/lib/libhakmem.so.0" "$work/musl_use"
