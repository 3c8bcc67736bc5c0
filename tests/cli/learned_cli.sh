# SPDX-License-Identifier: MIT
# `hakmem learned`: files of option profile shown, compared, added up and checked. If this fails,
# nobody can see what a program starts with, or a damaged file passes for a sound one.
. "$(dirname "$0")/lib.sh"
needs sed python3

refused none 2 "usage: hakmem learned" learned
refused verb 2 "learned: unexpected argument 'sing'" learned sing file
refused no_file 2 "usage: hakmem learned" learned show
refused option 2 "learned: there is no option '--all'" learned --all show x
refused one 2 "learned: diff takes two files" learned diff "$work/a"
refused absent 1 "learned: $work/none is not there" learned show "$work/none"
refused folder 1 "learned: $work is not a regular file" learned lint "$work"
echo text >"$work/text"
refused foreign 1 "learned: $work/text is not a file that hakmem wrote" learned show "$work/text"
refused merge_foreign 1 "is not a file that hakmem wrote" learned merge "$work/text"

# run FILE PROGRAM: the program with the option.
runs() { HAKMEM_PROFILE=$1 LD_PRELOAD=$PRELOAD_LIB "$2" >/dev/null 2>&1; }
cp "/bin/true" "$work/alpha"
cp "/bin/true" "$work/beta"
runs "$work/a" "$work/alpha"
runs "$work/b" "$work/alpha"
runs "$work/b" "$work/beta"
check "the files are there" [ -s "$work/a" ]
asked show 0 learned show "$work/a"
shows show '^PROGRAM +RUNS +FIRST SECOND +LARGE BLOCKS SEEN +SLABS SEEN +RULES +VALUES +SIZES$'
shows show '^alpha +[01] '
asked show_two 0 learned show "$work/a" "$work/b"
shows show_two "^$work/b\$"
shows show_two '^beta '
asked lint 0 learned lint "$work/a" "$work/b"
shows lint "^$work/a: sound, 1 program\$"
shows lint "^$work/b: sound, 2 programs\$"
asked same 0 learned diff "$work/a" "$work/a"
equal "no difference" "$(cat "$work/same.out")" "no difference"
asked diff 0 learned diff "$work/a" "$work/b"
shows diff '^\+beta '
asked diff_back 0 learned diff "$work/b" "$work/a"
shows diff_back '^-beta '
asked merged 0 learned merge "$work/a" "$work/b"
cp "$work/merged.out" "$work/merged"
asked merged_lint 0 learned lint "$work/merged"
shows merged_lint "^$work/merged: sound, 2 programs\$"
asked merged_one 0 learned merge "$work/a"
check "one file merged is that file" cmp -s "$work/a" "$work/merged_one.out"

# Episodes add up.
asked twice 0 learned merge "$work/a" "$work/a"
equal "twice the evidence" "$(awk '$1 == "slabs" { print $3 }' "$work/twice.out")" \
    $((2 * $(awk '$1 == "slabs" { print $3 }' "$work/a")))

# As objects.
both="$work/a $work/b"
for words in "show $both" "diff $both" "lint $work/a" "merge $both"; do
    asked json 0 learned --json $words
    check "$words: JSON" python3 -m json.tool "$work/json.out" /dev/null
done

# What is wrong with a file, and with one of several.
sed 's/^program beta/program gamma/' "$work/b" >"$work/changed"
refused changed 1 "learned: $work/changed has a wrong checksum" learned lint "$work/changed"
asked some 1 learned lint "$work/a" "$work/changed"
shows some "^$work/a: sound"
cp "$work/a" "$work/open"
chmod 666 "$work/open"
refused open 1 "is writable by other users" learned lint "$work/open"
ln -s "$work/a" "$work/link"
refused link 1 "is a symbolic link" learned lint "$work/link"
asked json_wrong 1 learned --json lint "$work/link"
shows json_wrong '"is_sound": false, "reason": "is a symbolic link"'
