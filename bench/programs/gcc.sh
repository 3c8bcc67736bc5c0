#!/bin/sh
# SPDX-License-Identifier: MIT
# title: a C compiler on a large source
# packages: gcc libc6-dev
# gcc: a generated source of many functions, optimised. One operation is one function.
. "$(dirname "$0")/lib.sh"
needs gcc
awk 'BEGIN {
    for (i = 0; i < 100; i++) {
        printf "int f%d(int *a, int n)\n{\n    int s = %d;\n", i, i
        printf "    for (int j = 0; j < n; j++) {\n        switch (a[j] %% 7) {\n"
        for (k = 0; k < 6; k++)
            printf "        case %d: s = s * %d + a[j] - (s >> %d); break;\n", k, i + k + 3, k + 1
        printf "        default: s ^= a[j] + %d;\n        }\n    }\n    return s;\n}\n", i
    }
}' >"$work/source.c"
measured gcc -O2 -c -o "$work/source.o" "$work/source.c"
[ -s "$work/source.o" ] || fail "gcc wrote nothing"
throughput 100
