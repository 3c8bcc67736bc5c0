# SPDX-License-Identifier: MIT
# sqlite3 makes the same database of 100,000 rows, with an index, and answers the same. If this
# fails, users' data pass through memory that is not safe.
. "$(dirname "$0")/lib.sh"
needs sqlite3
HOME=$work # where it looks for settings
export HOME

cat >"$work/rows.sql" <<'END'
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, weight REAL, note BLOB);
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 100000)
INSERT INTO item SELECT n, 'item ' || (n * 7919 % 100003), n / 7.0, zeroblob(n % 200) FROM number;
CREATE INDEX item_name ON item(name);
SELECT count(*), sum(id), round(avg(weight), 3), sum(length(note)) FROM item;
SELECT id, name FROM item WHERE name LIKE 'item 9999%' ORDER BY name;
SELECT substr(name, 1, 6) AS head, count(*) AS c
FROM item GROUP BY head ORDER BY c DESC, head LIMIT 9;
UPDATE item SET note = name || name WHERE id % 3 = 0;
DELETE FROM item WHERE id % 10 = 7;
SELECT a.id, b.id FROM item a JOIN item b ON a.name = b.name AND a.id < b.id ORDER BY a.id LIMIT 5;
VACUUM;
PRAGMA integrity_check;
END

well sqlite3 sqlite3 rows.db ".read $work/rows.sql"
check "the last word is ok" grep -q '^ok$' "$work/sqlite3.out"
check "the database files are equal" cmp "$work/plain/rows.db" "$work/preloaded/rows.db"
