# SPDX-License-Identifier: MIT
# The manual page is free of warnings, and man finds and shows it where it is installed.
. "$(dirname "$0")/lib.sh"
needs mandoc man
installed
page=$prefix/share/man/man3/hakmem.3
check "no warning: $(mandoc -T lint -W warning "$page" 2>&1 | head -n 5)" \
    mandoc -T lint -W warning "$page"
MANWIDTH=80 man -M "$prefix/share/man" 3 hakmem >"$work/shown" 2>"$work/warnings" ||
    fail "man failed"
equal "man says nothing" "$(cat "$work/warnings")" ""
for word in LD_PRELOAD HAKMEM_DECAY HAKMEM_STATS hakmem.o ENOMEM 'hakmem::object'; do
    check "it tells of $word" grep -q "$word" "$work/shown"
done
