# SPDX-License-Identifier: MIT
# Hashes, regular expressions, strings that grow, and children that do the same.
use strict;
use warnings;

sub work {
    my ($seed) = @_;
    my (%table, $text);
    my $state = $seed;
    for my $i (1 .. 40000) {
        $state = ($state * 1103515245 + 12345) % 2147483648;
        my $key = "k" . ($state % 5000);
        $table{$key} .= "x$i;";
        delete $table{"k" . ($i % 5000)} if $i % 7 == 0;
        $text .= $key if $i % 10 == 0;
    }
    my $sum = 0;
    $sum += length $table{$_} for keys %table;
    my %count;
    $count{$1}++ while $text =~ /k(\d)/g;
    my @sorted = sort { $count{$b} <=> $count{$a} || $a <=> $b } keys %count;
    (my $short = $text) =~ s/k(\d)\d*/$1/g;
    return join " ", scalar(keys %table), $sum, "@sorted", unpack("%32C*", $short);
}

print work(1), "\n";
for my $child (2 .. 6) {
    pipe(my $read, my $write) or die;
    my $pid = fork;
    die unless defined $pid;
    if ($pid == 0) {
        close $read;
        print $write work($child), "\n";
        close $write;
        exit 0;
    }
    close $write;
    print scalar <$read>;
    waitpid $pid, 0;
    die "child: $?" if $?;
}
