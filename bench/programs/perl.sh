#!/bin/sh
# SPDX-License-Identifier: MIT
# title: a Perl script: hashes of strings
# packages: perl
# perl: hashes of arrays of strings, split, joined and sorted. One operation is one line.
. "$(dirname "$0")/lib.sh"
needs perl
cat >"$work/lines.pl" <<'END'
use strict;
use warnings;
my ($count) = @ARGV;
my %lines;
for my $i (1 .. $count) {
    my @fields = split /,/, join(",", $i, $i * $i % 9973, "x" x ($i % 60));
    push @{ $lines{ $fields[1] } }, \@fields;
}
my $sum = 0;
for my $key (sort keys %lines) {
    $sum += scalar map { join ";", @$_ } @{ $lines{$key} };
}
print "$sum\n";
END
measured perl "$work/lines.pl" 200000
says 200000
throughput 200000
