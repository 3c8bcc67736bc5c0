# SPDX-License-Identifier: MIT
# The documents as a site: every page is in the menu, every link leads somewhere, the search knows
# the words, and nothing is loaded from another host. If this fails, `./hak site` fails, or readers
# meet dead links.
. "$(dirname "$0")/lib.sh"
needs mandoc
root=$(cd "$tests/../.." && pwd)
mkdir "$work/tree" "$work/tree/out"
for name in "$root"/*; do
    [ "$name" = "$root/out" ] || cp -R "$name" "$work/tree"
done
mkdir -p "$root/out"
venv=$root/out/venv-site
if ! cmp -s "$root/tools/site/requirements.txt" "$venv/requirements.txt"; then
    (cd "$root" && ./hak site) >"$work/said" 2>&1 || [ -x "$venv/bin/mkdocs" ] ||
        skip "no mkdocs: $(tail -n 1 "$work/said")"
fi

# builds: the site of the copy; what is said is in $work/said.
builds() {
    "$venv/bin/python" "$work/tree/tools/site/build.py" >"$work/said" 2>&1
}

site=$work/tree/out/site
check "it is built: $(builds || tail -n 5 "$work/said")" [ -e "$site/index.html" ]
for page in index ARCHITECTURE docs/CONFIG docs/migrate/jemalloc man/hakmem.3 man/hakmem.1 \
    docs/adr/index docs/adr/0025-caches-by-processor packaging/python/index; do
    check "there is $page" [ -s "$site/$page.html" ]
done
check "a linked file is there" cmp "$site/docs/hakmem.conf" "$root/docs/hakmem.conf"
check "the search knows the options" grep -q quarantine "$site/search/search_index.json"
check "both palettes are there" grep -q 'data-md-color-scheme="slate"' "$site/index.html"

# refuses SENTENCE WORDS: the copy with one thing wrong is refused, and the words say why.
refuses() {
    if builds; then
        fail "$1"
    fi
    check "$1: $(tail -n 3 "$work/said")" grep -q "$2" "$work/said"
}
echo '[nothing](docs/NOTHING.md)' >>"$work/tree/SECURITY.md"
refuses "a broken link is seen" "docs/NOTHING.md"
cp "$root/SECURITY.md" "$work/tree"
echo '[nothing](docs/CONFIG.md#nothing)' >>"$work/tree/SECURITY.md"
refuses "a broken anchor is seen" "#nothing"
cp "$root/SECURITY.md" "$work/tree"
echo '# Forgotten' >"$work/tree/docs/FORGOTTEN.md"
refuses "a page without a place in the menu is seen" FORGOTTEN.md
rm "$work/tree/docs/FORGOTTEN.md"
echo '<img src="https://example.org/a.png">' >>"$work/tree/SECURITY.md"
refuses "a page that loads something from elsewhere is seen" "loads https://example.org/a.png"
