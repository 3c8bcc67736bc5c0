#!/bin/sh
# SPDX-License-Identifier: MIT
# title: an SQL database in memory
# packages: sqlite3
# sqlite3: rows inserted, indexed, grouped and changed in memory. One operation is one row inserted.
. "$(dirname "$0")/lib.sh"
needs sqlite3
cat >"$work/rows.sql" <<'END'
create table item(id integer primary key, name text, amount integer);
create index item_name on item(name);
with recursive n(x) as (select 1 union all select x + 1 from n where x < 200000)
insert into item select x, 'name ' || (x * x % 9973) || ' of ' || x, x % 977 from n;
create table total as select substr(name, 1, 8) as start, group_concat(name) as names,
    sum(amount) as amount from item group by start;
update item set name = upper(name) where id % 3 = 0;
delete from item where id % 5 = 0;
select count(*) from item;
END
measured sqlite3 :memory: ".read $work/rows.sql"
says 160000
throughput 200000
