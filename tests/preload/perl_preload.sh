# SPDX-License-Identifier: MIT
# perl's hashes, regular expressions and forked children work as ever. If this fails, scripts that
# nobody looks at any more break the day hakmem is preloaded system-wide.
. "$(dirname "$0")/lib.sh"
needs perl

PERL_HASH_SEED=0
export PERL_HASH_SEED
well perl perl "$tests/perl_workload.pl"
equal "each child printed a line" "$(wc -l <"$work/perl.out")" 6
