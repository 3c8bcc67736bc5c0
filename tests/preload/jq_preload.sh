# SPDX-License-Identifier: MIT
# jq reads, sorts, groups and prints JSON: millions of small reference-counted blocks. If this
# fails, half of all shell scripts that talk to a service break.
. "$(dirname "$0")/lib.sh"
needs jq

well make jq -nc '[range(20000) | {n: ., word: "w\(. * 7919 % 997)", list: [range(. % 9)]}]'
cp "$work/make.out" "$work/numbers.json"
well group jq -S 'group_by(.word) | map({(.[0].word): length}) | add' "$work/numbers.json"
well walk jq -c '.[] | select(.n % 101 == 0) | .list |= map(tostring) | tojson | fromjson' \
    "$work/numbers.json"
well match jq -r '[.[].word | capture("w(?<d>[0-9])").d] | unique | join(",")' "$work/numbers.json"
equal "all digits that begin a number are there" "$(cat "$work/match.out")" 0,1,2,3,4,5,6,7,8,9
same broken jq . "$tests/lib.sh"
check "what is not JSON is refused" [ "$(cat "$work/broken.status")" != 0 ]
