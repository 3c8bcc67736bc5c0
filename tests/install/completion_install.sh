# SPDX-License-Identifier: MIT
# Shells complete the command's words: bash, zsh and fish find the files where they are installed,
# and offer what the command has. The sample of /etc/hakmem.conf is installed, and right.
. "$(dirname "$0")/lib.sh"
needs bash awk sed
installed
PATH=$prefix/bin:$PATH
[ ! -e /etc/hakmem.conf ] || skip "there is an /etc/hakmem.conf here"
"$prefix/bin/hakmem" --help | sed -n 's/^  hakmem \([a-z]*\) .*/\1/p' | sort >"$work/subcommands"

# bash: offered WORD...: what is offered for the last word.
file=$prefix/share/bash-completion/completions/hakmem
offered() {
    bash --norc -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _hakmem hakmem "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        [ "${#COMPREPLY[@]}" = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' "$file" "$@" \
        2>"$work/offered.err" | sort | xargs
    check "bash says nothing: $(cat "$work/offered.err")" [ ! -s "$work/offered.err" ]
}
equal "all subcommands" "$(offered hakmem '' | tr ' ' '\n' | grep -v ^-)" \
    "$(cat "$work/subcommands")"
equal "a subcommand" "$(offered hakmem ru)" "rules run"
equal "an option" "$(offered hakmem run -o dec)" decay=
equal "a value" "$(offered hakmem run -o price =)" "compact even speed"
equal "the rest of one" "$(offered hakmem run -o price = co)" compact
equal "a mode" "$(offered hakmem run --mode ha)" hardened
equal "what run takes" "$(offered hakmem run --st)" --strict
check "a program" sh -c 'echo " $0 " | grep -q " ls "' "$(offered hakmem run l)"
equal "an option to list" "$(offered hakmem options thread)" thread_cache
equal "what top takes" "$(offered hakmem top 1 --in)" --interval
equal "what profile takes" "$(offered hakmem profile --fl)" --flame
equal "what growth takes" "$(offered hakmem growth 1 --m)" --most
equal "no size" "$(offered hakmem growth --most '')" ""
equal "what a process is asked" "$(offered hakmem ctl 1 '')" "dump profile set trim"
equal "after a wait as well" "$(offered hakmem ctl --wait 5 1 tr)" trim
equal "an option that is set" "$(offered hakmem ctl 1 set dec)" decay=
equal "its value" "$(offered hakmem ctl 1 set price = co)" compact
equal "on or off" "$(offered hakmem ctl 1 profile o)" "off on"
equal "what ps takes" "$(offered hakmem ps --a)" --ask
check "processes" sh -c 'echo " $0 " | grep -q " 1 "' "$(offered hakmem doctor '')"
equal "first words" "$(offered hakmem top --a) $(offered hakmem ctl --l) \
$(offered hakmem rules --p) $(offered hakmem classes --c)" "--all --later --program --count"
check "processes to leave a request to" sh -c 'echo " $0 " | grep -q " 1 "' \
    "$(offered hakmem ctl --later '')"
equal "nothing for a program's name" "$(offered hakmem rules --program '')" ""
equal "every option of top and ctl is in each file" "$(for command in top ctl; do
    "$prefix/bin/hakmem" $command --help | sed -n 's/^  --\([a-z]*\).*/\1/p'
done | while read -r option; do
    grep -q -e "--$option\[" "$prefix/share/zsh/site-functions/_hakmem" || echo "zsh: $option"
    grep -q -e "-l $option " "$prefix/share/fish/vendor_completions.d/hakmem.fish" ||
        echo "fish: $option"
done)" ""
equal "nothing for a pace" "$(offered hakmem top 1 --interval '')" ""

# fish says what it would offer.
if command -v fish >/dev/null; then
    fish_file=$prefix/share/fish/vendor_completions.d/hakmem.fish
    fished() {
        HOME=$work fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$fish_file" "$1" \
            2>"$work/fish.err" | cut -f1 | sort | xargs
        check "fish says nothing: $(cat "$work/fish.err")" [ ! -s "$work/fish.err" ]
    }
    equal "fish: a subcommand" "$(fished 'hakmem ru')" "rules run"
    equal "fish: an option" "$(fished 'hakmem run -o dec')" decay=
    equal "fish: a value" "$(fished 'hakmem run -o price=co')" price=compact
    equal "fish: a mode" "$(fished 'hakmem run --mode ha')" hardened
    equal "fish: an option to list" "$(fished 'hakmem options thread')" thread_cache
    equal "fish: what a process is asked" "$(fished 'hakmem ctl 1 tr')" trim
    equal "fish: what top takes" "$(fished 'hakmem top --in')" --interval
fi
if command -v zsh >/dev/null; then
    check "zsh reads it" zsh -n "$prefix/share/zsh/site-functions/_hakmem"
fi

# The sample: nothing but comments, and right in each line that becomes a setting.
sample=$prefix/share/doc/hakmem/hakmem.conf
check "it changes nothing as it is" [ -z "$(grep -v '^#' "$sample" | grep .)" ]
sed -n 's/^#\([a-z_]* =.*\)/\1/p' "$sample" >"$work/settings"
"$prefix/bin/hakmem" options | awk 'NR > 1 && /^[a-z]/ { print $1 }' >"$work/options"
sed 's/ =.*//' "$work/settings" >"$work/named"
check "every option is in it" cmp "$work/named" "$work/options"
while read -r setting; do
    quietly "$prefix/bin/hakmem" run -o "$setting" true
    equal "'$setting' is right" "$(cat "$work/said")" ""
done <"$work/settings"
built_in() { awk 'NR > 1 && /^[a-z]/ { print $1, $2 }' "$1"; }
"$prefix/bin/hakmem" options >"$work/unset"
HAKMEM_CONF=$(grep -v '= *$' "$work/settings" | paste -sd,)
export HAKMEM_CONF
"$prefix/bin/hakmem" options >"$work/set"
check "its values are the built-in ones" [ "$(built_in "$work/set")" = "$(built_in "$work/unset")" ]
