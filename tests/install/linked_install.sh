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

# What such programs allocate is the program's, not that of hakmem's functions on the way.
cat >"$work/owner.cpp" <<END
#include <cstdlib>
void *volatile kept;
__attribute__((noinline)) static void aligns()
{
    void *block;
    if (posix_memalign(&block, 4096, 40000) == 0)
        kept = block;
}
__attribute__((noinline)) static void grows() { kept = std::realloc(std::malloc(100), 30000); }
__attribute__((noinline)) static void news() { kept = operator new(20000); }
__attribute__((noinline)) static void zeros() { kept = std::calloc(10, 100); }
int main() { for (int i = 0; i < 9; i++) { aligns(); grows(); news(); zeros(); } }
END
for flags in "" -static -Wl,--gc-sections -no-pie; do
    "$CXX" -g -O1 -fno-builtin $flags -Wl,--eh-frame-hdr "$prefix/lib/hakmem.o" "$work/owner.cpp" \
        -o "$work/owner" -pthread
    quietly env HAKMEM_HEAP_PROFILE=pprof HAKMEM_HEAP_PROFILE_SAMPLES=0 \
        HAKMEM_HEAP_PROFILE_RATE=1 HAKMEM_STATS_FILE="$work/owned" "$work/owner"
    quietly "$prefix/bin/hakmem" profile "$work/owned.pprof" --folded
    equal "who allocates, ${flags:-alone}" "$(sed -n 's/.*;main;//p' "$work/said" |
        sed 's/ .*//' | sort -u | tr '\n' ' ')" "aligns grows news zeros "
    rm "$work/owned.pprof"
done

# A program that calls no malloc itself, only through libc.
cat >"$work/quiet.c" <<END
#include <stdio.h>
int main(void) { return fclose(fopen("/dev/null", "r")); }
END
large_blocks=0
silently "$CC" -static "$work/quiet.c" -L"$prefix/lib" -Wl,-u,malloc -lhakmem -o "$work/quiet"
serves quiet "$work/quiet"
