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
refused of_process 2 "names one of a file, and 1 is a process" rules --program beta 1
refused no_site 2 "rules: a site is FILE+0xOFFSET BYTES" rules "$work/a" pin
refused no_bytes 2 "rules: a site is FILE+0xOFFSET BYTES" rules "$work/a" pin alpha+0x12bb
refused large 2 "rules: a site is FILE+0xOFFSET BYTES" rules "$work/a" pin alpha+0x12bb 4097
refused no_file 2 "rules: import takes one file" rules "$work/a" import
echo "site lively" >"$work/lines"
refused no_rule 1 "line 1 of $work/lines is no rule" rules "$work/a" import "$work/lines"

asked pin 0 rules "$work/a" pin alpha+0x12bb 100
shows pin ': 1 rule of alpha written$'
asked forbid 0 rules "$work/a" forbid libx.so+0x40 1 alpha+0x77
asked forbid_three 0 rules "$work/a" forbid libx.so+0x40 1 alpha+0x77 alpha+0x88
refused four 2 "rules: a site is FILE+0xOFFSET BYTES" rules "$work/a" pin a+0x1 1 a+0x2 a+0x3 a+0x4
refused no_place 2 "rules: a site is FILE+0xOFFSET BYTES" rules "$work/a" pin a+0x1 1 a+0x2 a
asked list 0 rules "$work/a"
shows list '^pinned     alpha\+0x12bb, 112 bytes: no samples$'
shows list '^forbidden  libx.so\+0x40 < alpha\+0x77, 8 bytes: no samples$'
shows list '^forbidden  libx.so\+0x40 < alpha\+0x77 < alpha\+0x88, 8 bytes: no samples$'
asked json 0 rules --json "$work/a"
check "it is JSON" python3 -c 'import json, sys
rules = json.load(open(sys.argv[1]))
assert [rule["state"] for rule in rules] == ["pinned", "forbidden", "forbidden"], rules
assert rules[1]["caller"] == rules[2]["caller"] == "alpha+0x77", rules
assert [rule["effect"] for rule in rules] == [None] * 3, rules
callers = sorted(rule["second_caller"] for rule in rules)
assert callers == ["", "", "alpha+0x88"], rules' "$work/json.out"
asked export 0 rules "$work/a" export
shows export '^site pinned 112 0 0 alpha\+0x12bb -$'
shows export '^site forbidden 8 0 0 libx.so\+0x40 alpha\+0x77 alpha\+0x88$'
echo "site active 128 412 400 alpha+0x99 -" >"$work/lines"
asked import 0 rules "$work/a" import "$work/lines"
asked again 0 rules "$work/a"
shows again '^active     alpha\+0x99, 128 bytes: 97 % of 412 samples outlived two generations$'
asked free 0 rules "$work/a" free alpha+0x12bb 112
asked freed 0 rules "$work/a"
shows freed '^watched    alpha\+0x12bb'
asked lint 0 learned lint "$work/a"

# Lines of one, two and three places come over, and evidence of the same site adds up.
cp /bin/true "$work/beta"
HAKMEM_PROFILE=$work/b LD_PRELOAD=$PRELOAD_LIB "$work/beta" >/dev/null 2>&1
cat >"$work/lines" <<END
site mixed 64 90 30 liby.so+0x1@5 -
site mixed 64 80 30 liby.so+0x1@5 beta+0x2
site active 64 40 40 liby.so+0x1@5 beta+0x2 beta+0x3
END
asked three 0 rules "$work/b" import "$work/lines"
asked exported 0 rules "$work/b" export
equal "what was imported is exported" "$(sort "$work/exported.out")" "$(sort "$work/lines")"
asked merged 0 learned merge "$work/b" "$work/b"
check "evidence adds up" grep -q '^site active 64 80 80 liby.so+0x1@5 beta+0x2 beta+0x3$' \
    "$work/merged.out"
sed 's/ beta+0x3$//' "$work/b" >"$work/cut"
refused cut 1 "has a wrong checksum" learned lint "$work/cut"
cp "$work/b" "$work/c"
asked changed 0 rules "$work/c" pin liby.so+0x1@5 64 beta+0x2 beta+0x3
asked differs 0 learned diff "$work/b" "$work/c"
shows differs '^\+beta '

# A file of several programs: no rule gets to the one that happened to end last.
cp "$work/b" "$work/both"
HAKMEM_PROFILE=$work/both LD_PRELOAD=$PRELOAD_LIB "$work/alpha" >/dev/null 2>&1
cp "$work/both" "$work/before"
asked both 0 rules "$work/both"
equal "each program has its own" "$(sed -n '1,4p' "$work/both.out")" "alpha
no rules

beta"
equal "and its rules" "$(sed 1,4d "$work/both.out")" "$(asked alone 0 rules "$work/b" &&
    cat "$work/alone.out")"
several="$work/both has several programs, name one with --program: alpha, beta"
for verb in pin forbid free; do
    refused "$verb" 1 "$several" rules "$work/both" "$verb" alpha+0x12bb 100
done
refused imported 1 "$several" rules "$work/both" import "$work/lines"
refused exported 1 "$several" rules "$work/both" export
refused in_json 1 "$several" rules --json "$work/both"
check "nothing was written" cmp -s "$work/both" "$work/before"
asked named 0 rules --program beta "$work/both" pin beta+0x9 64
shows named ': 1 rule of beta written$'
asked named_json 0 rules --json --program beta "$work/both"
shows named_json '"site": "beta\+0x9"'

# What the file is told while the program runs outlasts the run: `cat` has read the file when it
# answers, and writes it when its input ends.
cp "$(command -v cat)" "$work/gamma"
run_gamma() { HAKMEM_LEARN=sites HAKMEM_PROFILE=$work/g LD_PRELOAD=$PRELOAD_LIB "$work/gamma"; }
run_gamma </dev/null
mkfifo "$work/in" "$work/out"
meanwhile() { # meanwhile NAME ARGUMENT...: hakmem rules during a run
    run_gamma <"$work/in" >"$work/out" &
    running=$!
    exec 5>"$work/in" 6<"$work/out"
    echo read >&5
    read -r answer <&6
    ran=$1
    shift
    asked "$ran" 0 rules "$work/g" "$@"
    exec 5>&- 6<&-
    wait "$running"
    asked "after_$ran" 0 rules "$work/g"
}
meanwhile ban forbid gamma+0x12bb 100
shows after_ban '^forbidden  gamma\+0x12bb, 112 bytes'
meanwhile lift free gamma+0x12bb 100
shows after_lift '^watched    gamma\+0x12bb, 112 bytes'
meanwhile nothing list
shows after_nothing '^no rules$'
