# SPDX-License-Identifier: MIT
# fish: completion of hakmem(1). Subcommands and options are asked of the command itself.

function __hakmem_options
    hakmem options 2>/dev/null | awk 'NR > 1 && /^[a-z]/ { print $1 }'
end

# The words that an option takes, where they are words.
function __hakmem_values
    hakmem options $argv[1] 2>/dev/null |
        sed -n 's/^ *accepted: \([a-z_|]*\)\(;.*\)*$/\1/p' | string split '|'
end

function __hakmem_settings
    set -l name (commandline -ct | string replace -r '[=:].*' '')
    if string match -qr '[=:]' -- (commandline -ct); and test -n "$name"
        for value in (__hakmem_values $name)
            echo "$name=$value"
        end
    else
        __hakmem_options | string replace -r '$' '='
    end
end

function __hakmem_subcommands
    hakmem --help 2>/dev/null | awk '$1 == "hakmem" && $2 ~ /^[a-z]/ { print $2 }'
end

complete -c hakmem -f
complete -c hakmem -n __fish_use_subcommand -a '(__hakmem_subcommands)'
complete -c hakmem -n __fish_use_subcommand -l help -d 'the subcommands'
complete -c hakmem -n __fish_use_subcommand -l version
complete -c hakmem -n '__fish_seen_subcommand_from run' -l mode -x -a '(__hakmem_values mode)'
complete -c hakmem -n '__fish_seen_subcommand_from run' -s o -x -a '(__hakmem_settings)'
complete -c hakmem -n '__fish_seen_subcommand_from run' -l bounds -d 'checked copies'
complete -c hakmem -n '__fish_seen_subcommand_from run' -l strict -d 'not without hakmem'
complete -c hakmem -n '__fish_seen_subcommand_from run' -a '(__fish_complete_subcommand)'
complete -c hakmem -n '__fish_seen_subcommand_from options' -l json -d 'as objects'
complete -c hakmem -n '__fish_seen_subcommand_from options' -a '(__hakmem_options)'
complete -c hakmem -n '__fish_seen_subcommand_from stats' -l all -d 'also zeros'
complete -c hakmem -n '__fish_seen_subcommand_from stats' -F
complete -c hakmem -n '__fish_seen_subcommand_from top doctor ctl' -a '(__fish_complete_pids)'
complete -c hakmem -n '__fish_seen_subcommand_from top' -l once -d 'once, as text'
complete -c hakmem -n '__fish_seen_subcommand_from top' -l json -d 'once, as JSON'
complete -c hakmem -n '__fish_seen_subcommand_from top' -l serve -x -d 'port for a collector'
complete -c hakmem -n '__fish_seen_subcommand_from top' -l all -d 'with --serve, all processes'
complete -c hakmem -n '__fish_seen_subcommand_from top' -l interval -x -d 'seconds between looks'
complete -c hakmem -n '__fish_seen_subcommand_from profile autopsy' -F
complete -c hakmem -n '__fish_seen_subcommand_from profile' -l folded -d 'stacks, one a line'
complete -c hakmem -n '__fish_seen_subcommand_from profile' -l live -d 'what lives'
complete -c hakmem -n '__fish_seen_subcommand_from profile' -l allocated -d 'all that was allocated'
complete -c hakmem -n '__fish_seen_subcommand_from profile' -l json -d 'everything, as JSON'
complete -c hakmem -n '__fish_seen_subcommand_from profile' -l leaks -d 'what lives since long'
complete -c hakmem -n '__fish_seen_subcommand_from profile' -l pprof -r -d 'write for pprof'
complete -c hakmem -n '__fish_seen_subcommand_from profile' -l heap-v2 -r -d 'write for jeprof'
complete -c hakmem -n '__fish_seen_subcommand_from profile' -l flame -r -d 'write a flame graph'
complete -c hakmem -n '__fish_seen_subcommand_from profile growth' -l all -d 'all rows'
complete -c hakmem -n '__fish_seen_subcommand_from growth' -l most -x -d 'exit status 3 beyond it'
complete -c hakmem -n '__fish_seen_subcommand_from ps' -l ask -d 'what is live in them'
complete -c hakmem -n '__fish_seen_subcommand_from ps' -l json -d 'as objects'
complete -c hakmem -n '__fish_seen_subcommand_from ctl' -l wait -x -d 'seconds for the answer'
complete -c hakmem -n '__fish_seen_subcommand_from ctl' -l later -d 'if it sleeps'
complete -c hakmem -n '__fish_seen_subcommand_from ctl' -a 'trim dump set profile'
complete -c hakmem -n '__fish_seen_subcommand_from ctl; and __fish_seen_subcommand_from set' \
    -a '(__hakmem_settings)'
complete -c hakmem -n '__fish_seen_subcommand_from ctl; and __fish_seen_subcommand_from profile' \
    -a 'on off'
complete -c hakmem -n '__fish_seen_subcommand_from ctl; and __fish_seen_subcommand_from dump' \
    -a '--pprof --heap-v2 --folded --profile-json'
complete -c hakmem -n '__fish_seen_subcommand_from learned' -l json -d 'as objects'
complete -c hakmem -n '__fish_seen_subcommand_from learned' -a 'show diff merge lint'
complete -c hakmem -n '__fish_seen_subcommand_from learned' -F
complete -c hakmem -n '__fish_seen_subcommand_from elo rules classes' -l json -d 'as objects'
complete -c hakmem -n '__fish_seen_subcommand_from rules classes' -l program -x -d 'of the file'
complete -c hakmem -n '__fish_seen_subcommand_from classes' -l count -x -d 'of classes'
complete -c hakmem -n '__fish_seen_subcommand_from elo rules classes' -F
complete -c hakmem -n '__fish_seen_subcommand_from rules' -a 'list pin forbid free export import'
