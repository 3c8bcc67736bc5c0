# SPDX-License-Identifier: MIT
# `hakmem migrate`: settings of other allocators become settings that hakmem takes, and what has no
# counterpart is said to have none. If this fails, people copy settings that do something else.
. "$(dirname "$0")/lib.sh"
needs sed

asked jemalloc 0 migrate \
    MALLOC_CONF=dirty_decay_ms:1000,background_thread:false,narenas:4,thp:always,stats_print:true
equal "a line for each setting" "$(wc -l <"$work/jemalloc.out")" 5
shows jemalloc '^HAKMEM_DECAY=1000ms  # dirty_decay_ms=1000;'
shows jemalloc '^HAKMEM_MAINTENANCE=off  # '
shows jemalloc '^# narenas=4: nothing to set; '
shows jemalloc '^HAKMEM_THP=on  # '
shows jemalloc '^HAKMEM_STATS=text  # '
asked never 0 migrate MALLOC_CONF=dirty_decay_ms:-1
shows never '^HAKMEM_DECAY=never  # '
asked at_once 0 migrate MIMALLOC_PURGE_DELAY=0
shows at_once '^HAKMEM_DECAY=0ms  # MIMALLOC_PURGE_DELAY=0'
asked others 0 migrate TCMALLOC_HEAP_LIMIT_MB=500 TCMALLOC_RELEASE_RATE=0 \
    MIMALLOC_SHOW_STATS=1 MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072 \
    GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1
shows others '^HAKMEM_LIMIT=500M  # TCMALLOC_HEAP_LIMIT_MB=500'
shows others '^HAKMEM_DECAY=never  # TCMALLOC_RELEASE_RATE=0'
shows others '^HAKMEM_STATS=text  # MIMALLOC_SHOW_STATS=1'
shows others '^# MALLOC_ARENA_MAX=2: nothing to set'
shows others '^HAKMEM_RETAIN=131072  # '
shows others '^HAKMEM_THP=on  # glibc\.malloc\.hugetlb=1'

asked profiles 0 migrate MALLOC_CONF=prof:true,lg_prof_sample:19,prof_leak:true HEAPPROFILE=/tmp/any
shows profiles '^HAKMEM_HEAP_PROFILE_RATE=524288  # lg_prof_sample=19'
shows profiles '^HAKMEM_HEAP_PROFILE=leaks  # prof_leak=true'
shows profiles '^# prof=true: nothing to set beside HAKMEM_HEAP_PROFILE=leaks$'
shows profiles '^# HEAPPROFILE=/tmp/any: nothing to set beside HAKMEM_HEAP_PROFILE=leaks$'

# sets NAME LINE...: these are all the settings of NAME, without their comments. An option is set
# once, by what asks for most: the defaults of another setting take nothing away.
sets() {
    set_name=$1
    shift
    equal "$set_name: all that is set" "$(sed -n 's/^\(HAKMEM_[^ ]*\)  #.*/\1/p' \
        "$work/$set_name.out")" "$(printf '%s\n' "$@")"
}
asked checked 0 migrate MALLOC_CHECK_=3 MALLOC_PERTURB_=165
sets checked HAKMEM_MODE=hardened
shows checked '^# MALLOC_PERTURB_=165: nothing to set beside HAKMEM_MODE=hardened$'
asked tunables 0 migrate GLIBC_TUNABLES=glibc.malloc.check=3:glibc.malloc.perturb=165
sets tunables HAKMEM_MODE=hardened
asked unperturbed 0 migrate MALLOC_PERTURB_=0 MALLOC_CHECK_=3
sets unperturbed HAKMEM_MODE=hardened
asked sampled 0 migrate MALLOC_CONF=prof:true,prof_leak:false
sets sampled HAKMEM_HEAP_PROFILE=on
asked leaks 0 migrate MALLOC_CONF=prof_leak:true,prof:true
sets leaks HAKMEM_HEAP_PROFILE=leaks
asked cleared 0 migrate MALLOC_CONF=junk:true,zero:false
sets cleared HAKMEM_HARDEN=zero
shows cleared '^# zero=false: nothing to set beside HAKMEM_HARDEN=zero$'
asked again 0 migrate MALLOC_CONF=thp:always,confirm_conf:true,thp:never MIMALLOC_VERBOSE=0
sets again HAKMEM_SHOW_CONF=1 HAKMEM_THP=off
asked default 0 migrate MALLOC_CONF=zero:false,junk:false
sets default HAKMEM_HARDEN=none

# What is printed can be given to hakmem as it is.
cat "$work/jemalloc.out" "$work/at_once.out" "$work/others.out" "$work/profiles.out" |
    sed -n 's/^HAKMEM_\([A-Z_]*=[^ ]*\)  #.*/\1/p' \
    >"$work/settings"
check "there are settings" [ "$(wc -l <"$work/settings")" -ge 8 ]
while read -r setting; do
    asked taken 0 run -o "$setting" true
    complaints=$(grep '^hakmem: ' "$work/taken.err" | grep -v ' not freed, ' || true)
    check "$setting is right: $complaints" [ -z "$complaints" ]
done <"$work/settings"

# The pages name what there is.
for name in $(cat "$tests"/../../docs/migrate/*.md | grep -o 'hakmem_[a-z_]*' | sort -u); do
    check "there is $name" grep -qE "\\b$name\\b" "$tests/../../include/hakmem/hakmem.h"
done

# Options that jemalloc 5.3.1, gperftools 2.10 and mimalloc 3.4.3 read, few of which have a
# counterpart: each is known.
asked rare 0 migrate \
    MALLOC_CONF=cache_oblivious:true,hpa:true,lg_tcache_nslots_mul:1,utrace:true \
    TCMALLOC_DISABLE_MEMORY_RELEASE=1 TCMALLOC_TRANSFER_NUM_OBJ=40 HEAP_PROFILE_INUSE_INTERVAL=1 \
    MIMALLOC_ARENA_RESERVE=1 MIMALLOC_PAGE_RECLAIM_ON_FREE=1 MIMALLOC_GUARDED_SAMPLE_RATE=1 \
    MIMALLOC_LARGE_OS_PAGES=1 MALLOC_PERTURB_=3
shows rare '^HAKMEM_DECAY=never  # TCMALLOC_DISABLE_MEMORY_RELEASE=1'
shows rare '^HAKMEM_THP=on  # MIMALLOC_LARGE_OS_PAGES=1'
shows rare '^HAKMEM_HARDEN=zero  # MALLOC_PERTURB_=3'
shows rare '^# hpa=true: nothing to set; '
asked unknown 1 migrate MALLOC_CONF=frobnicate:1,thp:never
shows unknown '^# frobnicate=1: not known$'
shows unknown '^HAKMEM_THP=off'
asked value 0 migrate MALLOC_CONF=thp:maybe,dirty_decay_ms:soon
shows value '^# thp=maybe: no value of thp corresponds to it$'
asked power 0 migrate MALLOC_CONF=lg_prof_sample:64
asked rate 0 migrate TCMALLOC_RELEASE_RATE=10
shows rate '^# TCMALLOC_RELEASE_RATE=10: no value of decay corresponds to it$'
shows power '^# lg_prof_sample=64: no value of heap_profile_rate corresponds to it$'
shows value '^# dirty_decay_ms=soon: no value of decay corresponds to it$'
asked lines 1 migrate "$(printf 'MALLOC_CONF=narenas:4\necho a,dirty_decay_ms:1\r\necho b')" \
    "$(printf 'MALLOC_ARENA_MAX=2\necho c')" "$(printf 'nothing\necho d=\necho e')"
equal "a value stays in its comment" "$(grep -v '^#' "$work/lines.out")" ""
equal "a line for each of these, too" "$(wc -l <"$work/lines.out")" 4
shows lines '^# narenas=4\?echo a: nothing to set; '
refused word 2 "migrate takes NAME=VALUE, not 'word'" migrate word
MIMALLOC_PURGE_DELAY=50 "$hakmem" migrate >"$work/here.out" || fail "from the environment"
shows here '^HAKMEM_DECAY=50ms  # MIMALLOC_PURGE_DELAY=50$'
refused nothing 1 "no setting of another allocator" migrate
