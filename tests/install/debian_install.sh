# SPDX-License-Identifier: MIT
# The Debian package holds what is installed, for /usr, and works from any folder it is unpacked in.
. "$(dirname "$0")/lib.sh"
needs "$CMAKE" dpkg-deb pkg-config readelf "$CC"
quietly "${CMAKE%cmake}cpack" -G DEB --config "$OUT/CPackConfig.cmake" -B "$work/package"
package=$(echo "$work"/package/hakmem_*.deb)
equal "its name" "$(dpkg-deb -f "$package" Package)" hakmem
equal "what it needs" "$(dpkg-deb -f "$package" Depends)" "libc6 (>= 2.31)"
dpkg-deb -x "$package" "$work/unpacked"
dpkg-deb -e "$package" "$work/control"
check "the loader's cache is told" grep -q ldconfig "$work/control/triggers"
usr=$work/unpacked/usr
for file in lib/libhakmem.so lib/libhakmem.so.0 lib/libhakmem.a lib/hakmem.o \
    lib/pkgconfig/hakmem.pc lib/cmake/hakmem/hakmem-config.cmake share/man/man3/hakmem.3 \
    share/man/man1/hakmem.1 bin/hakmem \
    share/doc/hakmem/copyright include; do
    check "the package holds $file" [ -e "$usr/$file" ]
done
equal "nothing is outside of /usr" "$(ls "$work/unpacked")" usr
check "the name of the library" \
    sh -c "readelf -d '$usr/lib/libhakmem.so' | grep -q 'SONAME.*\[libhakmem.so.0\]'"

silently "$CC" "$consumer/use.c" -o "$work/use" -pthread
serves preloaded env LD_PRELOAD="$usr/lib/libhakmem.so.0" "$work/use"
serves run "$usr/bin/hakmem" run -- "$work/use"
export PKG_CONFIG_PATH="$usr/lib/pkgconfig"
silently "$CC" -static "$consumer/use.c" $(pkg-config --static --libs hakmem) -o "$work/static"
serves static "$work/static"
silently "$CC" "$(pkg-config --variable=object hakmem)" "$consumer/use.c" -o "$work/object" -pthread
serves object "$work/object"
