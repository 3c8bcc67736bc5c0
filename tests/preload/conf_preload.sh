# SPDX-License-Identifier: MIT
# Settings: what is asked for is shown in a form that scripts can read; a mistake costs one line
# that says what would have been right, and nothing else. If this fails, people run with other
# settings than they think, or cannot find out with which.
. "$(dirname "$0")/lib.sh"
needs ls sort cut

table=$tests/../../src/conf/conf_table.h

# asked NAME SETTING...: runs ls with settings; $work/NAME.said is what came on stderr.
asked() {
    name=$1
    shift
    status=0
    timeout "$limit_s" env "$@" LD_PRELOAD="$PRELOAD_LIB" ls / \
        >"$work/$name.out" 2>"$work/$name.said" </dev/null || status=$?
}
said() { cat "$work/$name.said"; }
# One line that has this text, and no other line.
says_once() {
    equal "$name: one line, $(said)" "$(said | wc -l)" 1
    check "$name: $(said)" grep -qiF -- "$1" "$work/$name.said"
    equal "$name: the program runs" "$status" 0
}
value() { said | sed -n "s/^hakmem: $1=//p"; }

asked nothing PATH="$PATH"
equal "nothing asked, nothing said" "$(said)" ""

# HAKMEM_SHOW_CONF=1: one line a row of the table, and nothing else.
asked show HAKMEM_SHOW_CONF=1
sed -n 's/^ *X(\([a-z_]*\), \([A-Z]*\),.*/\1/p' "$table" | sort >"$work/rows"
check "the table has rows" [ "$(wc -l <"$work/rows")" -ge 5 ]
sources='built-in|price|mode|/etc/hakmem.conf|HAKMEM_CONF|environment'
check "each line is hakmem: name=value (source)" \
    [ -z "$(said | grep -vE "^hakmem: [a-z_]+=[^ ]* \\(($sources)\\)\$")" ]
said | sed 's/^hakmem: \([a-z_]*\)=.*/\1/' | sort >"$work/shown"
check "every option is shown once" cmp "$work/rows" "$work/shown"
check "all of them are built in" [ -z "$(said | grep -v '(built-in)$')" ]
decay=$(value decay)

# The sources, and which one wins.
asked sources HAKMEM_SHOW_CONF=1 HAKMEM_CONF=decay:3s,retain:4M,stats:off HAKMEM_RETAIN=5M
equal "a packed setting" "$(value decay)" "3000 (HAKMEM_CONF)"
equal "a variable of its own wins" "$(value retain)" "5242880 (environment)"
equal "what is built in can be asked for" "$(value stats)" "off (HAKMEM_CONF)"
asked never HAKMEM_SHOW_CONF=1 HAKMEM_DECAY=-1
equal "never is -1" "$(value decay)" "-1 (environment)"
asked hidden HAKMEM_SHOW_CONF=0
equal "0 shows nothing" "$(said)" ""

# Mistakes.
asked word HAKMEM_DECAY=banana
says_once "decay"
equal "$name: the whole line" "$(said)" \
    "hakmem: HAKMEM_DECAY: bad value 'banana', accepted: 0ms to never (units ms, s)"
asked unit HAKMEM_RETAIN=4X
says_once "accepted: 0 to "
asked small HAKMEM_THREAD_CACHE=1
says_once "accepted: 64K to 256M"
asked huge HAKMEM_RETAIN=99999999999999999999999
says_once "accepted: 0 to "
asked choice HAKMEM_FOREIGN=burn
says_once "accepted: ignore|forward|abort"
asked empty HAKMEM_DECAY= HAKMEM_MODE= HAKMEM_ABORT_CONF=1
equal "$name: no mistake" "$status $(said)" "0 "
asked empty_packed HAKMEM_CONF=decay:
says_once "HAKMEM_CONF: decay: bad value '', accepted: 0ms to "
asked packed HAKMEM_CONF=decay:banana
says_once "HAKMEM_CONF: decay: bad value 'banana', accepted: 0ms to "
asked equals HAKMEM_CONF=decay=banana
says_once "HAKMEM_CONF: decay: bad value 'banana', accepted: 0ms to "
asked either HAKMEM_SHOW_CONF=1 HAKMEM_CONF='decay=2s, retain = 3M,stats:off'
equal "an equals sign is as good as a colon" "$(value decay)" "2000 (HAKMEM_CONF)"
equal "white space is nothing" "$(value retain)" "3145728 (HAKMEM_CONF)"
equal "a colon" "$(value stats)" "off (HAKMEM_CONF)"
asked near HAKMEM_DEKAY=2s
says_once "HAKMEM_DEKAY: there is no such option; the nearest is decay"
asked no_value HAKMEM_CONF=decay
says_once "decay"
asked unknown HAKMEM_BOGUS=1
says_once "BOGUS"
asked unknown_packed HAKMEM_CONF=bogus:1
says_once "bogus"
long=$(printf '%2000s' '' | tr ' ' x)
asked long HAKMEM_STATS_FILE="$long"
equal "$name: one line" "$(said | wc -l)" 1
asked long_name "HAKMEM_$long=1"
equal "$name: one line" "$(said | wc -l)" 1
check "$name: which is not endless" [ "$(said | wc -c)" -lt 300 ]

asked kept HAKMEM_SHOW_CONF=1 HAKMEM_DECAY=banana
equal "after a mistake the default holds" "$(value decay)" "$decay"
equal "and the mistake is reported once" "$(said | grep -c banana\\\|accepted)" 1
asked others HAKMEM_DECAY=banana HAKMEM_BOGUS=1 HAKMEM_FOREIGN=burn
equal "each mistake has its line" "$(said | wc -l)" 3

# What is accepted and has no effect: one line, but among the rows of HAKMEM_SHOW_CONF no other.
asked idle HAKMEM_LEARN=none HAKMEM_PROFILE="$work/learned" HAKMEM_ABORT_CONF=1
says_once "hakmem: without effect, since nothing is learned: profile (environment)"
asked idle_shown HAKMEM_LEARN=none HAKMEM_PROFILE="$work/learned" HAKMEM_SHOW_CONF=1
equal "$name: rows only" "$(said | wc -l)" "$(wc -l <"$work/rows")"

# HAKMEM_ABORT_CONF=1: rather not at all than wrong.
asked abort HAKMEM_ABORT_CONF=1 HAKMEM_DECAY=banana
equal "$name: aborted" "$status" 134
check "$name: after the line" grep -q '^hakmem: .*accepted: 0ms to ' "$work/$name.said"
asked abort_unknown HAKMEM_ABORT_CONF=1 HAKMEM_BOGUS=1
equal "$name: aborted" "$status" 134
asked abort_nothing HAKMEM_ABORT_CONF=1 HAKMEM_DECAY=5
equal "$name: not without a mistake" "$status" 0
equal "$name: nothing said" "$(said)" ""

# The statistics: on stderr unless a file is named; every counter of the tables, once.
asked statistics HAKMEM_STATS=raw
equal "$name: the program runs" "$status" 0
check "$name: each line is name: value" [ -z "$(said | grep -vE '^[a-z0-9_]+: [0-9]+$')" ]
for counter in threads_started refills fallback foreign_frees out_of_memory map_calls; do
    equal "$name: $counter is there once" "$(said | grep -c "^$counter: ")" 1
done
equal "$name: none is there twice" "$(said | cut -d: -f1 | sort | uniq -d)" ""
asked nowhere HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/no/such/folder"
equal "$name: the program runs" "$status" 0
says_once "statistics cannot be written to $work/no/such/folder: no such file or directory"
asked appended HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/appended"
asked appended HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/appended"
equal "statistics are appended" "$(grep -c '^refills: ' "$work/appended")" 2
equal "and are nobody else's to read" "$(stat -c %a "$work/appended")" 600
equal "nothing on stderr then" "$(said)" ""
