# SPDX-License-Identifier: MIT
# Huge pages: what option thp asks of the kernel is what the mappings say. If this fails, small
# processes grow by megabytes, or large ones miss huge pages.
. "$(dirname "$0")/lib.sh"
needs grep python3
[ -e /sys/kernel/mm/transparent_hugepage/enabled ] || skip "the kernel has no huge pages"

! grep -qs '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled \
    /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled ||
    skip "the machine has huge pages switched off"

# flags OBJECTS: the VmFlags of a python3 with that many objects of its own on hakmem.
cat >"$work/flags.py" <<'PY'
import sys
kept = [bytes(100 + i % 8) for i in range(int(sys.argv[1]))]
flags = [line.split()[1:] for line in open("/proc/self/smaps") if line.startswith("VmFlags:")]
print("huge" if any("hg" in line for line in flags) else "small")
PY
pages() {
    env "$2" PYTHONMALLOC=malloc LD_PRELOAD="$PRELOAD_LIB" python3 "$work/flags.py" "$1"
}

equal "off: no huge pages however large" "$(pages 1500000 HAKMEM_THP=off)" small
equal "auto: none in a small process" "$(pages 1000 HAKMEM_THP=auto)" small
equal "auto: some in a large one" "$(pages 1500000 HAKMEM_THP=auto)" huge
equal "on: in every process" "$(pages 1000 HAKMEM_THP=on)" huge
