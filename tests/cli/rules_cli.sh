# SPDX-License-Identifier: MIT
# `hakmem rules`: rules of call sites in files. If this fails, rules cannot be looked at or changed
# between runs. tests/preload/sites_preload.py asks running processes.
. "$(dirname "$0")/lib.sh"
needs sed python3

refused verb 2 "rules: unexpected argument 'sing'" rules file sing
refused option 2 "rules: there is no option '--all'" rules --all x
refused absent 1 "rules: $work/none is not there" rules "$work/none"
cp /bin/true "$work/alpha"
HAKMEM_PROFILE=$work/a LD_PRELOAD=$PRELOAD_LIB "$work/alpha" >/dev/null 2>&1
asked empty 0 rules "$work/a"
shows empty '^no rules$'
asked empty_json 0 rules --json "$work/a"
shows empty_json '^\[\]$'
refused program 1 "has no program beta" rules --program beta "$work/a"
refused no_site 2 "rules: a site is FILE+0xOFFSET BYTES" rules "$work/a" pin
refused no_bytes 2 "rules: a site is FILE+0xOFFSET BYTES" rules "$work/a" pin alpha+0x12bb
refused large 2 "rules: a site is FILE+0xOFFSET BYTES" rules "$work/a" pin alpha+0x12bb 4097
refused no_file 2 "rules: import takes one file" rules "$work/a" import
echo "site lively" >"$work/lines"
refused no_rule 1 "line 1 of $work/lines is no rule" rules "$work/a" import "$work/lines"

asked pin 0 rules "$work/a" pin alpha+0x12bb 100
shows pin ': 1 rule of alpha written$'
asked forbid 0 rules "$work/a" forbid libx.so+0x40 1 alpha+0x77
asked list 0 rules "$work/a"
shows list '^pinned     alpha\+0x12bb, 112 bytes: no samples$'
shows list '^forbidden  libx.so\+0x40 < alpha\+0x77, 8 bytes: no samples$'
asked json 0 rules --json "$work/a"
check "it is JSON" python3 -c 'import json, sys
rules = json.load(open(sys.argv[1]))
assert [rule["state"] for rule in rules] == ["pinned", "forbidden"], rules
assert rules[1]["caller"] == "alpha+0x77", rules' "$work/json.out"
asked export 0 rules "$work/a" export
shows export '^site pinned 112 0 0 alpha\+0x12bb -$'
echo "site active 128 412 400 alpha+0x99 -" >"$work/lines"
asked import 0 rules "$work/a" import "$work/lines"
asked again 0 rules "$work/a"
shows again '^active     alpha\+0x99, 128 bytes: 97 % of 412 samples outlived two generations$'
asked free 0 rules "$work/a" free alpha+0x12bb 112
asked freed 0 rules "$work/a"
shows freed '^watched    alpha\+0x12bb'
asked lint 0 learned lint "$work/a"
