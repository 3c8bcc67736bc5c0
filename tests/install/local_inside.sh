# SPDX-License-Identifier: MIT
# local_inside.sh BUILD: in a root that it may change, installs from a build folder into /usr/local,
# as cmake does by itself, and uninstalls. Run by tarball_install.sh.
build=$1
PRELOAD_LIB=libhakmem.so.0
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/root.sh"
hint="Run ldconfig as root"

everything >"$work/before"
quietly "$CMAKE" --install "$build"
check "it says that the loader does not know the library" grep -q "$hint" "$work/said"
ldconfig
quietly "$CMAKE" --install "$build"
check "then it says nothing of it" sh -c "! grep -q '$hint' '$work/said'"
large_blocks=0
serves preloaded env LD_PRELOAD=libhakmem.so.0 sh -c 'ls -l / | sort >/dev/null'
quietly "$CMAKE" --build "$build" --target uninstall
ldconfig
everything >"$work/after"
# Folders that others use as well may stay.
equal "no file stays" "$(differs "$work/before" "$work/after" | sed -n 's/^> //p' |
    while read -r path; do [ -d "$path" ] && [ "${path##*/}" != hakmem ] || echo "$path"; done)" ""
