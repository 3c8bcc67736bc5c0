# SPDX-License-Identifier: MIT
# A program takes the installed hakmem in by hand: the object first, -lhakmem shared and static,
# position independent or not, bound at once; the linker has nothing to say about any of it. If this
# fails, a program built as the README says runs on libc's malloc, or does not start.
. "$(dirname "$0")/lib.sh"
needs "$CC" "$CXX"
installed

# build NAME FLAGS...: use.c or, where NAME begins with cpp, use.cpp; $before and $after are what
# stands left and right of the source.
build() {
    name=$1
    shift
    case $name in
    cpp*) silently "$CXX" "$@" $before "$consumer/use.cpp" $after -o "$work/$name" -pthread ;;
    *) silently "$CC" "$@" $before "$consumer/use.c" $after -o "$work/$name" -pthread ;;
    esac
}

# Without hakmem nothing is counted: the proof below can fail.
before= after=
build system
plainly system env HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/system.stats" "$work/system"
equal "a program without hakmem ends well" "$(cat "$work/system.plain.status")" 0
check "a program without hakmem leaves no statistics" [ ! -e "$work/system.stats" ]

for language in c cpp; do
    before=$prefix/lib/hakmem.o after=
    build ${language}_object
    build ${language}_object_no_pie -no-pie -fno-pie
    build ${language}_object_static -static
    build ${language}_object_static_pie -static-pie -fPIE
    build ${language}_object_now -Wl,-z,now,-z,relro
    before= after="-L$prefix/lib -lhakmem"
    build ${language}_archive_static -static
    build ${language}_archive_static_pie -static-pie -fPIE
    after="-L$prefix/lib -Wl,-rpath,$prefix/lib -lhakmem"
    build ${language}_shared
    build ${language}_shared_no_pie -no-pie -fno-pie
    build ${language}_shared_now -Wl,-z,now,-z,relro
    build ${language}_shared_lazy -Wl,-z,lazy
done
for program in "$work"/c_* "$work"/cpp_*; do
    serves "${program##*/}" "$program"
done

# Static programs under the heap profile, of every block: few stay.
for program in "$work"/c*_static "$work"/c*_static_pie; do
    quietly env HAKMEM_HEAP_PROFILE=leaks \
        HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=1 "$program"
    check "${program##*/} is profiled: $(head -c 300 "$work/said")" \
        grep -q ' not freed, allocated at ' "$work/said"
done

# A program that calls no malloc itself, only through libc.
cat >"$work/quiet.c" <<END
#include <stdio.h>
int main(void) { return fclose(fopen("/dev/null", "r")); }
END
large_blocks=0
silently "$CC" -static "$work/quiet.c" -L"$prefix/lib" -Wl,-u,malloc -lhakmem -o "$work/quiet"
serves quiet "$work/quiet"
