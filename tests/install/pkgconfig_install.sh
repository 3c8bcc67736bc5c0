# SPDX-License-Identifier: MIT
# pkg-config tells a compiler how to take in hakmem, shared and static, also after the installed
# folder was moved.
. "$(dirname "$0")/lib.sh"
needs pkg-config "$CC" "$CXX"
installed
mv "$prefix" "$work/moved folder"
# A folder without a blank in its name for flags that a shell splits.
ln -s "moved folder" "$work/moved"
export PKG_CONFIG_PATH="$work/moved/lib/pkgconfig"

equal "the version" "$(pkg-config --modversion hakmem)" \
    "$(sed -n 's/^project(hakmem VERSION \([0-9.]*\).*/\1/p' "$tests/../../CMakeLists.txt")"
for language in c cpp; do
    case $language in
    c) compiler=$CC ;;
    cpp) compiler=$CXX ;;
    esac
    source=$consumer/use.$language
    silently "$compiler" $(pkg-config --cflags hakmem) "$source" -o "$work/${language}_shared" \
        $(pkg-config --libs hakmem) -Wl,-rpath,"$work/moved/lib" -pthread
    silently "$compiler" -static $(pkg-config --static --cflags hakmem) "$source" \
        -o "$work/${language}_static" $(pkg-config --static --libs hakmem)
    # gcc leaves it out of static programs, and stacks would have one frame.
    check "a static program has its table of frames" \
        sh -c "readelf -lW '$work/${language}_static' | grep -q GNU_EH_FRAME"
    for kind in object archive; do
        module=hakmem-object
        [ $kind = object ] || module=hakmem-static
        silently "$compiler" $(pkg-config --cflags $module) "$source" -o "$work/${language}_$kind" \
            $(pkg-config --libs $module)
        check "$module: no library is needed" \
            sh -c "! readelf -d '$work/${language}_$kind' | grep -q libhakmem"
    done
    for kind in shared static object archive; do
        serves "${language}_$kind" "$work/${language}_$kind"
    done
done
# A linker that keeps only libraries with a visible use keeps this one.
printf 'int main(void) { return 0; }\n' >"$work/nothing.c"
silently "$CC" -Wl,--as-needed "$work/nothing.c" $(pkg-config --libs hakmem) -o "$work/nothing"
check "the library is needed" sh -c "readelf -d '$work/nothing' | grep -q libhakmem.so.0"
