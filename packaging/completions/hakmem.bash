# SPDX-License-Identifier: MIT
# bash: completion of hakmem(1). Subcommands and options are asked of the command itself.

_hakmem_options() { "$1" options 2>/dev/null | awk 'NR > 1 && /^[a-z]/ { print $1 "=" }'; }

# The words that an option takes, where they are words.
_hakmem_values() {
    "$1" options "$2" 2>/dev/null | sed -n 's/^ *accepted: \([a-z_|]*\)\(;.*\)*$/\1/p' | tr '|' '\n'
}

_hakmem_processes() { (cd /proc && printf '%s\n' [1-9]*); }

# The words of `hakmem run` before the program: then the program's own completion.
_hakmem_run() {
    local at=2 word
    while [ "$at" -lt "$COMP_CWORD" ]; do
        word=${COMP_WORDS[at]}
        case $word in
        --mode | -o)
            # bash takes the equals sign for a word.
            at=$((at + 2))
            [ "${COMP_WORDS[at]-}" != = ] || at=$((at + 2)) ;;
        --) at=$((at + 1)); break ;;
        -*) at=$((at + 1)) ;;
        *) break ;;
        esac
    done
    if [ "$at" -lt "$COMP_CWORD" ] || { [ "$at" = "$COMP_CWORD" ] && [[ $2 != -* ]]; }; then
        if declare -F _command_offset >/dev/null; then
            _command_offset "$at"
        elif [ "$at" = "$COMP_CWORD" ]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$2")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$2")
        fi
    else
        mapfile -t COMPREPLY < <(compgen -W '--mode -o --bounds --strict --' -- "$2")
    fi
}

_hakmem() {
    local command=$1 word=$2 before=$3 name=
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$command" --help 2>/dev/null |
            awk '$1 == "hakmem" && $2 ~ /^[a-z]/ { print $2 }') --help --version" -- "$word")
        return
    fi
    # -o NAME=VALUE is three words to bash where the equals sign divides words.
    if [ "$word" = = ]; then
        name=$before word=
    elif [ "$before" = = ]; then
        name=${COMP_WORDS[COMP_CWORD - 2]}
    elif [ "$before" = --mode ]; then
        name=mode
    fi
    if [ -n "$name" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_hakmem_values "$command" "$name")" -- "$word")
        return
    fi
    case ${COMP_WORDS[1]}:$before in
    run:-o | ctl:set)
        mapfile -t COMPREPLY < <(compgen -W "$(_hakmem_options "$command")" -- "$word")
        compopt -o nospace 2>/dev/null ;;
    run:*) _hakmem_run "$command" "$word" ;;
    options:*)
        mapfile -t COMPREPLY < <(compgen -W "$(_hakmem_options "$command" | tr -d =) --json" \
            -- "$word") ;;
    stats:*)
        mapfile -t COMPREPLY < <(compgen -W --all -- "$word"; compgen -f -- "$word") ;;
    top:--serve | top:--interval) ;;
    profile:--pprof | profile:--heap-v2 | profile:--flame)
        mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    profile:*)
        mapfile -t COMPREPLY < <(compgen -W '--folded --live --allocated --json --leaks --all
            --pprof --heap-v2 --flame diff '"$(_hakmem_processes)" -- "$word"
            compgen -f -- "$word") ;;
    growth:--most) ;;
    growth:growth)
        mapfile -t COMPREPLY < <(compgen -W "--all --most $(_hakmem_processes)" -- "$word") ;;
    growth:*)
        mapfile -t COMPREPLY < <(compgen -W '--all --most' -- "$word") ;;
    autopsy:autopsy)
        mapfile -t COMPREPLY < <(compgen -W "$(cd /dev/shm && printf '%s\n' hakmem.profile.* |
            sed -n 's/^hakmem\.profile\.\([0-9]*\)$/\1/p')" -- "$word"
            compgen -f -- "$word") ;;
    learned:learned)
        mapfile -t COMPREPLY < <(compgen -W '--json show diff merge lint' -- "$word") ;;
    learned:*)
        mapfile -t COMPREPLY < <(compgen -W --json -- "$word"; compgen -f -- "$word") ;;
    elo:elo)
        mapfile -t COMPREPLY < <(compgen -W "--json $(_hakmem_processes)" -- "$word"
            compgen -f -- "$word") ;;
    rules:rules)
        mapfile -t COMPREPLY < <(compgen -W "--json --program $(_hakmem_processes)" -- "$word"
            compgen -f -- "$word") ;;
    classes:classes)
        mapfile -t COMPREPLY < <(compgen -W "--json --count --program $(_hakmem_processes)" \
            -- "$word"
            compgen -f -- "$word") ;;
    rules:--program | classes:--count | classes:--program) ;;
    rules:*)
        mapfile -t COMPREPLY < <(compgen -W '--json --program list pin forbid free export import' \
            -- "$word") ;;
    classes:*)
        mapfile -t COMPREPLY < <(compgen -W '--json --count --program' -- "$word"
            compgen -f -- "$word") ;;
    ps:*) mapfile -t COMPREPLY < <(compgen -W '--ask --json' -- "$word") ;;
    ctl:--wait | ctl:trim) ;;
    ctl:dump)
        mapfile -t COMPREPLY < <(compgen -W '--pprof --heap-v2 --folded --profile-json' -- "$word"
            compgen -f -- "$word") ;;
    ctl:profile) mapfile -t COMPREPLY < <(compgen -W 'on off' -- "$word") ;;
    ctl:[0-9]*)
        if [ "${COMP_WORDS[COMP_CWORD - 2]}" = --wait ]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_hakmem_processes)" -- "$word")
        else
            mapfile -t COMPREPLY < <(compgen -W 'trim dump set profile' -- "$word")
        fi ;;
    ctl:ctl)
        mapfile -t COMPREPLY < <(compgen -W "--wait --later $(_hakmem_processes)" -- "$word") ;;
    ctl:--later)
        mapfile -t COMPREPLY < <(compgen -W "--wait $(_hakmem_processes)" -- "$word") ;;
    top:top)
        mapfile -t COMPREPLY < <(compgen -W "--once --json --serve --all --interval
            $(_hakmem_processes)" -- "$word") ;;
    doctor:doctor)
        mapfile -t COMPREPLY < <(compgen -W "$(_hakmem_processes)" -- "$word") ;;
    top:*)
        mapfile -t COMPREPLY < <(compgen -W '--once --json --serve --all --interval' -- "$word") ;;
    esac
}

complete -F _hakmem hakmem
