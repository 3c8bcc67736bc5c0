# SPDX-License-Identifier: MIT
# `hakmem elo` of a live process, which plays matches because its mode says so; research keeps what
# wins in the shadow, and a process that does not ask for matches has none. If this fails, what
# hakmem tries cannot be seen, or it tries without being asked.
. "$(dirname "$0")/lib.sh"
needs python3
[ -x "$OUT/larson_system" ] || skip "the benchmarks are not in this build"
hakmem=$OUT/hakmem

pid=
at_end() { [ -z "$pid" ] || kill "$pid" 2>/dev/null || :; }
# starts NAME SETTING...: a program that allocates until it is killed; $pid.
starts() {
    name=$1
    shift
    (cd "$work/preloaded" && exec env LD_PRELOAD="$PRELOAD_LIB" "$@" \
        "$OUT/larson_system" 300 8 1024 5000 1 12345 2) >/dev/null 2>"$work/$name.err" &
    pid=$!
}
stops() {
    kill "$pid"
    wait "$pid" 2>/dev/null || :
    pid=
}
# elo NAME ARGUMENT...: NAME.out, NAME.said.
elo() {
    name=$1
    shift
    status=0
    timeout "$limit_s" "$hakmem" elo "$@" >"$work/$name.out" 2>"$work/$name.said" || status=$?
}
# json FILE EXPRESSION: of what the file holds, b.
json() {
    python3 -c "import json, sys
print(eval(sys.argv[2], {'b': json.load(open(sys.argv[1]))}))" "$@"
}
# await_matches NAME: two were played, or one that cost so much that the next one has to wait. What
# was spent at each look is in NAME.looks.
await_matches() { becomes "matches are played" are_played "$1"; }
are_played() {
    elo "$1" --json "$pid"
    [ "$status" = 0 ] || { cat "$work/$1.said" && return 1; }
    json "$work/$1.out" 'b["played"], b["regret_ns"], b["cost_ns"]' >>"$work/$1.looks"
    [ "$(json "$work/$1.out" 'b["played"] > (b["regret_ns"] * 50 <= b["cost_ns"])')" = True ]
}

starts learning HAKMEM_MODE=learning
await_matches playing
equal "they are played in earnest" "$(json "$work/playing.out" 'b["matches"]')" played
equal "each has its value" "$(json "$work/playing.out" \
    'all(m["event"] == "void" or m["value"] in (25, 50, 75, 200, 400) for m in b["last"])')" True
equal "usual values come first" \
    "$(json "$work/playing.out" '[k["values"][0]["value"] for k in b["knobs"]]')" "[50, 100]"
# One match costs what was added between two looks, at most.
check "no more than a fiftieth is spent, and one match: $(cat "$work/playing.looks")" python3 -c '
import ast, sys
looks = [(0, 0, 0)] + [ast.literal_eval(line) for line in open(sys.argv[1])]
one = max(after[1] - before[1] for before, after in zip(looks, looks[1:]))
sys.exit(any(regret > cost / 50 + one for played, regret, cost in looks))' "$work/playing.looks"
elo words "$pid"
check "the table is for people" grep -q '^flush_keep_percent, .*: LEARN$' "$work/words.out"
check "with what was tried" grep -q ' RATING .* EVIDENCE' "$work/words.out"
elo every
equal "without a process, all" "$status" 0
check "this one is among them" grep -q "^$pid larson_system$" "$work/every.out"
elo every_json --json
equal "the same as objects" "$(json "$work/every_json.out" \
    "[p['elo']['matches'] for p in b if p['pid'] == $pid]")" "['played']"

# The same in top and in the statistics, of that moment or a later one.
timeout "$limit_s" "$hakmem" top --once "$pid" >"$work/top.out"
check "top says what is learned" grep -q '^What is learned' "$work/top.out"
check "and what is tried" \
    grep -qE '^  flush_keep_percent (25|50|75), usually 50: [A-Z]+, ' "$work/top.out"
timeout "$limit_s" "$hakmem" top --json "$pid" >"$work/counters.out"
check "statistics count the matches that were not void" [ "$(json "$work/counters.out" \
    'b["process"]["matches_played"]')" -ge "$(json "$work/playing.out" \
    'sum(m["event"] != "void" for m in b["last"])')" ]
stops

# What is known is kept in the file, and the next run begins with half of it.
file=$work/learned
for seconds in 6 24 90; do # longer on a busy machine
    rm -f "$file" "$work/saving.stats"
    preloaded saving env HAKMEM_LEARN=matches HAKMEM_PROFILE="$file" \
        "$OUT/larson_system" $seconds 8 1024 5000 1 12345 2
    tried=$(counter saving matches_played)
    [ "$tried" = 0 ] || break
done
check "matches are played" [ "$tried" -gt 0 ]
elo saved --json "$file"
equal "the file is read" "$status" 0
equal "it has what was tried" "$(json "$work/saved.out" 'sum(m["matches"] for m in b)')" "$tried"
equal "of this program" "$(json "$work/saved.out" 'b[0]["program"]')" larson_system
elo saved_words "$file"
check "as a table" grep -q '^larson_system  *flush_keep_percent ' "$work/saved_words.out"
before=$(json "$work/saved.out" 'sum(m["matches"] // 2 for m in b)')
starts warm HAKMEM_LEARN=matches HAKMEM_PROFILE="$file" HAKMEM_STATS_SHM=on
answers() { elo warm --json "$pid" && [ "$status" = 0 ]; }
becomes "the next run answers" answers
check "the next run begins with half" [ "$(json "$work/warm.out" \
    'sum(v["matches"] for k in b["knobs"] for v in k["values"])')" -ge "$before" ]
stops
elo nofile "$work/nothing"
equal "no file, no table" "$status" 1
check "and it says so" grep -q "^hakmem: elo: $work/nothing " "$work/nofile.said"

starts research HAKMEM_MODE=research HAKMEM_STATS=off
await_matches shadow
equal "research plays in the shadow" "$(json "$work/shadow.out" 'b["matches"]')" shadow
stops

starts balanced
becomes "it runs" grep -q libhakmem "/proc/$pid/maps"
elo balanced "$pid"
equal "a process that does not ask for matches has none" "$status" 1
check "and is told how" grep -q 'HAKMEM_MODE=learning' "$work/balanced.said"
stops

elo nobody 999999999
equal "nobody has no matches" "$status" 1
elo strange --chess 1
equal "no other option" "$status" 2
elo two 1 2
equal "one at a time" "$status" 2
