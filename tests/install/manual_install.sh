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
command=$prefix/share/man/man1/hakmem.1
check "no warning: $(mandoc -T lint -W warning "$command" 2>&1 | head -n 5)" \
    mandoc -T lint -W warning "$command"
MANWIDTH=80 man -M "$prefix/share/man" 1 hakmem >"$work/command" 2>"$work/warnings" ||
    fail "man failed"
equal "man says nothing" "$(cat "$work/warnings")" ""
for name in $("$prefix/bin/hakmem" --help | sed -n 's/^  hakmem \([a-z]*\) .*/\1/p'); do
    check "the manual of the command tells of $name" grep -q "^   hakmem $name" "$work/command"
done
header=$prefix/include/hakmem/hakmem.h
functions=$(sed -n 's/^HAKMEM_API.*[ *]\(hakmem_[a-z_]*\)(.*/\1/p' "$header"
    sed -n 's/^ *\**\(hakmem_[a-z_]*\)(.*/\1/p' "$header")
check "functions are found in the header" [ "$(printf '%s\n' "$functions" | wc -l)" -ge 28 ]
for function in $functions; do
    check "it has the form of $function" grep -q "^\.Fo $function\$" "$page"
done
for field in $(sed -n 's/^    uint64_t \([a-z_]*\);.*/\1/p' "$header"); do
    check "it tells of the number $field" grep -q "^\.It Va $field\$" "$page"
done
for error in $(grep -oE '\bE[A-Z]{4,}\b' "$header" | sort -u); do
    check "it tells of the error $error" grep -qx "\.It Bq Er $error" "$page"
done
sed -n '/^\.Sh RETURN/,/^\.Sh ENV/p' "$page" >"$work/returned"
for function in $(grep -oE ' int hakmem_[a-z_]+' "$header" | sed 's/.* //'); do
    [ "$function" = hakmem_version ] ||
        check "it tells what $function returns" grep -q "^\.Fn $function\>" "$work/returned"
done
for word in LD_PRELOAD HAKMEM_DECAY HAKMEM_STATS hakmem.o ENOMEM 'hakmem::object'; do
    check "it tells of $word" grep -q "$word" "$work/shown"
done
