# SPDX-License-Identifier: MIT
# git makes, for the same files and dates, commits of the same names. If this fails, hakmem must not
# come near a developer's repository.
. "$(dirname "$0")/lib.sh"
needs git

cat >"$work/history.sh" <<'END'
set -eu
git init -q -b trunk repository
cd repository
i=1
while [ $i -le 30 ]; do
    j=0
    while [ $j -lt 20 ]; do
        seq $((i * j)) $((i * j + 40 * i)) >"file$j"
        j=$((j + 1))
    done
    GIT_AUTHOR_DATE="2001-01-01T00:00:$((i + 10))Z"
    GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
    export GIT_AUTHOR_DATE GIT_COMMITTER_DATE
    git add .
    git commit -q -m "commit $i"
    i=$((i + 1))
done
git log --stat --format='%H %s'
git diff HEAD~5 | git hash-object --stdin
git -c pack.threads=4 gc -q --aggressive
git fsck --strict --no-progress
git clone -q . ../clone
git -C ../clone log --oneline | wc -l
END

GIT_AUTHOR_NAME=nobody
GIT_COMMITTER_NAME=nobody
EMAIL=nobody@example.org
GIT_CONFIG_NOSYSTEM=1
HOME=$work
export GIT_AUTHOR_NAME GIT_COMMITTER_NAME EMAIL GIT_CONFIG_NOSYSTEM HOME
well git sh "$work/history.sh"
equal "all commits are in the clone" "$(tail -n 1 "$work/git.out")" 30
