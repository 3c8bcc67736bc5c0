# SPDX-License-Identifier: MIT
# vi edits a large file by commands: substitutes, moves, sorts, undoes. If this fails, an
# editor on hakmem damages files.
. "$(dirname "$0")/lib.sh"
vi=
for program in vim vim.tiny vi; do
    [ -n "$vi" ] || vi=$(command -v $program) || :
done
[ -n "$vi" ] || skip "no vi"
"$vi" --version | grep -q IMproved || skip "$vi is another vi"

seq 20000 >"$work/numbers"
cat >"$work/commands" <<'END'
%s/1\([0-9]\)/one\1/g
g/7$/move 0
%!sed s/8/eight/g
undo
redo
g/99/copy $
2,5000delete
1put
%join 3
write! edited
quit!
END
sed -i 's/^%join 3$/1,3000join/' "$work/commands"
well vi "$vi" -es -N -u NONE -i NONE -n -S "$work/commands" "$work/numbers"
check "the files are equal" cmp "$work/plain/edited" "$work/preloaded/edited"
check "something was edited" grep -q one2 "$work/preloaded/edited"
