# SPDX-License-Identifier: MIT
# With --full: the Rust crates' tests pass on arm64 and with musl, in a new root of Debian 13, which
# has a Rust for it. For arm64 there is a package of the standard library, and an emulator; for musl
# the library is built from its sources. If this fails, the crates are for x86-64 and glibc only.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/root.sh"
full || skip "only with --full"
[ "$(uname -m)" = x86_64 ] || skip "the targets are those of an x86-64 machine"
needs mmdebstrap
can_mount || skip "this one may not mount"
limit_s=3000

packages="cargo,rust-src,gcc,g++,binutils"
packages="$packages,libstd-rust-dev:arm64,gcc-aarch64-linux-gnu,g++-aarch64-linux-gnu,qemu-user"
packages="$packages,musl-tools,libunwind-19-dev"
mmdebstrap --quiet --variant=minbase --architectures=amd64,arm64 --include="$packages" \
    trixie "$work/clean" >"$work/said" 2>&1 || skip "no new root: $(tail -n 1 "$work/said")"
# cargo trusts what this machine trusts.
mkdir -p "$work/clean/etc/ssl/certs"
cp /etc/ssl/certs/ca-certificates.crt "$work/clean/etc/ssl/certs"

# In a copy: cargo writes Cargo.lock beside the sources.
mkdir "$work/tree" "$work/tree/packaging"
cp -r "$root/src" "$root/include" "$root/cmake" "$root/LICENSE" "$work/tree"
cp -r "$root/packaging/rust" "$work/tree/packaging"
rm -f "$work/tree/packaging/rust/Cargo.lock"
in_root "$work/clean" crate_inside.sh "$work/tree/packaging/rust"
