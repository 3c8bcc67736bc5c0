# SPDX-License-Identifier: MIT
# The whole of CPython's own tests, every small object from malloc.
. "$(dirname "$0")/lib.sh"

oks() { grep -cE '^[^ ]+ \([^ ]+\).* \.\.\. ok$' || :; }
bads() { sed -nE 's/^(FAIL|ERROR): ([^ ]+ \([^ ]+\)).*/\2/p'; }

begin cpython
needs /usr/bin/python3
/usr/bin/python3 -c 'import test.libregrtest, test.test_json' 2>/dev/null ||
    skip "no tests of CPython: ./hak test --full installs them"
version=$(/usr/bin/python3 -c 'import platform; print(platform.python_version())')
PYTHONMALLOC=malloc
export PYTHONMALLOC
# shellcheck disable=SC2086 # the modules are words
compare /usr/bin/python3 -m test -v -j 2 --timeout 900 $portion
