# SPDX-License-Identifier: MIT
# crate_inside.sh FOLDER: in a root with cargo and compilers for other targets, runs the tests of
# the crates in FOLDER for each of them. Run by crate_cross_install.sh.
folder=$1
PRELOAD_LIB=none
. "$(dirname "$0")/lib.sh"
unset CC CXX RUSTFLAGS
HOME=$work
CARGO_TARGET_DIR=$work/target
export HOME CARGO_TARGET_DIR
cd "$folder"
quietly cargo fetch

# tested TARGET OPTIONS...: the tests pass there; `override` takes a C++ compiler, too. An emulator
# would need minutes for what is not optimised.
tested() {
    target=$1
    shift
    quietly cargo test --locked --workspace --release --all-features --tests \
        --target "$target" "$@"
    check "$target: tests ran: $(tail -n 9 "$work/said")" \
        [ "$(grep -c '^test result: ok\. [1-9]' "$work/said")" -ge 5 ]
}

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
tested aarch64-unknown-linux-gnu

# Debian has neither a standard library for musl nor what rustup's brings for it: the library is
# built, musl-gcc starts and ends programs, and LLVM's library unwinds. That is compiled for glibc,
# whose checked functions musl lacks.
musl=x86_64-unknown-linux-musl
cat >"$work/checked.c" <<'END'
#include <stdarg.h>
#include <stdio.h>
int __vfprintf_chk(FILE *file, int flag, const char *format, va_list arguments)
{
    return vfprintf(file, format, arguments);
}
int __vsnprintf_chk(char *text, size_t bytes, int flag, size_t room, const char *format,
                    va_list arguments)
{
    return vsnprintf(text, bytes, format, arguments);
}
END
mkdir "$work/unwind"
cp /usr/lib/llvm-19/lib/libunwind.a "$work/unwind"
quietly musl-gcc -O2 -c "$work/checked.c" -o "$work/checked.o"
quietly ar rs "$work/unwind/libunwind.a" "$work/checked.o"
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER=musl-gcc
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS="-C link-self-contained=no \
-C relocation-model=static -L native=$work/unwind"
export CXX_x86_64_unknown_linux_musl=g++
export RUSTC_BOOTSTRAP=1 # -Z is for the compilers of every night
tested $musl -Z build-std
for program in "$CARGO_TARGET_DIR/$musl/release/deps"/global-*; do
    [ ! -x "$program" ] || check "a program of musl's needs no other libc" \
        sh -c "! readelf -ld '$program' | grep -q -e INTERP -e NEEDED"
done
