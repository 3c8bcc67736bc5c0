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
shows all '^thread_cache +8M +built-in$'
shows all '^    accepted: 64K to 256M \(units K, M, G, T\); built in: 8M$'

export HAKMEM_CONF=retain:3M,mode:fast HAKMEM_DECAY=never HAKMEM_SHOW_CONF=1 HAKMEM_ABORT_CONF=1
asked set 0 options
shows set '^decay +never +environment$'
shows set '^retain +3M +HAKMEM_CONF$'
shows set '^price +speed +mode$'
shows set '^thread_cache +16M +price$'
check "and nothing else is said" [ ! -s "$work/set.err" ]
asked one 0 options retain DECAY
equal "those that are named" "$(awk 'NR > 1 && /^[a-z]/ { print $1 }' "$work/one.out" | xargs)" \
    "retain decay"
HAKMEM_DECAY=soon
asked wrong 0 options
check "a wrong value is reported" grep -q "HAKMEM_DECAY: bad value 'soon'" "$work/wrong.err"
shows wrong '^decay +1s +price$'
refused unknown 2 "there is no option 'colour'" options decay colour
refused flag 2 "options: there is no option '--jsn'" options --jsn
refused near 2 "there is no option 'dekay'; the nearest is decay" options dekay

# By the name of its variable, and for programs.
HAKMEM_DECAY=never
asked variable 0 options HAKMEM_DECAY hakmem_retain
equal "variables name options" \
    "$(awk 'NR > 1 && /^[a-z]/ { print $1 }' "$work/variable.out" | xargs)" "decay retain"
HAKMEM_STATS_FILE='/a "b\c'
export HAKMEM_STATS_FILE
asked json 0 options --json
asked json_one 0 options HAKMEM_DECAY --json
if command -v python3 >/dev/null; then
    check "it is JSON, and says the same" python3 - "$work" <<'END'
import json, pathlib, sys
work = pathlib.Path(sys.argv[1])
rows = json.loads((work / "json.out").read_text())
names = [row["name"] for row in rows]
assert sorted(names) == (work / "rows").read_text().split(), names
of = {row["name"]: row for row in rows}
assert of["decay"]["value"] == "never" and of["decay"]["from"] == "environment"
assert of["decay"]["built_in"] == "125ms" and of["decay"]["variable"] == "HAKMEM_DECAY"
assert of["stats_file"]["value"] == '/a "b\\c'
assert all(row["accepted"] and row["meaning"] for row in rows)
assert [row["name"] for row in json.loads((work / "json_one.out").read_text())] == ["decay"]
END
fi
