# SPDX-License-Identifier: MIT
# `hakmem options`: every option, what it is here, where from, and what may be said.
. "$(dirname "$0")/lib.sh"
needs sed sort awk
table=$tests/../../src/conf/conf_table.h
# What this machine has in /etc is not ours to know.
[ ! -e /etc/hakmem.conf ] || skip "there is an /etc/hakmem.conf here"

sed -n 's/^ *X(\([a-z_]*\), \([A-Z]*\),.*/\1/p' "$table" | sort >"$work/rows"
asked all 0 options
awk 'NR > 1 && /^[a-z]/ { print $1 }' "$work/all.out" | sort >"$work/listed"
check "every option is listed once" cmp "$work/rows" "$work/listed"
check "no line is too long" [ -z "$(awk 'length > 80' "$work/all.out")" ]
shows all '^decay +125ms +built-in$'
shows all '^thread_cache +4M +built-in$'
shows all '^    accepted: 64K to 256M \(units K, M, G, T\); built in: 4M$'

export HAKMEM_CONF=retain:3M,mode:fast HAKMEM_DECAY=never HAKMEM_SHOW_CONF=1 HAKMEM_ABORT_CONF=1
asked set 0 options
shows set '^decay +never +environment$'
shows set '^retain +3M +HAKMEM_CONF$'
shows set '^price +speed +mode$'
shows set '^thread_cache +8M +price$'
check "and nothing else is said" [ ! -s "$work/set.err" ]
asked one 0 options retain DECAY
equal "those that are named" "$(awk 'NR > 1 && /^[a-z]/ { print $1 }' "$work/one.out" | xargs)" \
    "retain decay"
HAKMEM_DECAY=soon
asked wrong 0 options
check "a wrong value is reported" grep -q "HAKMEM_DECAY: bad value 'soon'" "$work/wrong.err"
shows wrong '^decay +1s +price$'
refused unknown 2 "there is no option 'colour'" options decay colour
