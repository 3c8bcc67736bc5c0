# SPDX-License-Identifier: MIT
# PostgreSQL makes a cluster, serves pgbench from many processes, vacuums, sorts in parallel and
# recovers from a kill. Its memory contexts take blocks that double; every backend is a fork. If
# this fails, a database loses its data to a preload.
. "$(dirname "$0")/lib.sh"
bin=
for folder in /usr/lib/postgresql/*/bin; do
    [ ! -x "$folder/postgres" ] || bin=$folder
done
[ -n "$bin" ] || skip "no postgres: its 216 MB are installed by ./hak test --full"

# It refuses to run as root.
chmod 711 "$work"
mkdir "$work/database"
as=
if [ "$(id -u)" = 0 ]; then
    needs setpriv
    as="setpriv --reuid=65534 --regid=65534 --clear-groups"
    chown 65534:65534 "$work/database"
fi
# The library, where another user may read it.
cp "$PRELOAD_LIB" "$work/libhakmem.so"
chmod 755 "$work/libhakmem.so"
cd "$work/database"
HOME=$work/database
export HOME
limit_s=1400

# database NAME LIBRARY COMMAND...: as the cluster's owner, who writes the statistics.
database() {
    name=$1
    library=$2
    shift 2
    status=0
    $as env LD_PRELOAD="$library" HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/database/$name.stats" \
        timeout "$limit_s" "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null || status=$?
    equal "$name: ends well, $(tail -n 5 "$work/$name.err")" "$status" 0
    check "$name: hakmem says nothing" \
        [ "$(cat "$work/$name.out" "$work/$name.err" | grep -ci hakmem:)" = 0 ]
    [ ! -e "$work/database/$name.stats" ] || mv "$work/database/$name.stats" "$work/$name.stats"
}
ask() { "$bin/psql" -X -A -t -v ON_ERROR_STOP=1 -h "$work/database" -U owner postgres "$@"; }

# starts NAME LIBRARY: env is preloaded, too, before it sets another file, and complains of one that
# it may not write.
starts() {
    : >"$work/$1.stats"
    chmod 666 "$work/$1.stats"
    server "$1" "$2" $as env HAKMEM_STATS_FILE="$work/database/$1.stats" \
        "$bin/postgres" -D "$work/database/cluster" -k "$work/database" -c listen_addresses= \
        -c shared_buffers=8MB -c max_connections=20 -c fsync=off -c work_mem=1MB \
        -c max_parallel_workers_per_gather=2 -c min_parallel_table_scan_size=0 \
        -c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c logging_collector=off
    becomes "$1 serves" ask -c 'SELECT 1'
}

cat >"$work/queries.sql" <<'END'
CREATE TABLE item AS SELECT n, 'item ' || (n * 7919 % 100003) AS name, n % 97 AS kind,
    repeat(md5(n::text), n % 20) AS note FROM generate_series(1, 30000) n;
CREATE INDEX ON item(name);
ANALYZE item;
SELECT kind, count(*), sum(length(note)), min(name) FROM item GROUP BY kind ORDER BY kind LIMIT 20;
SELECT md5(string_agg(name, ',' ORDER BY name)) FROM item;
SELECT count(*) FROM item a JOIN item b USING (kind) WHERE a.n < 2000;
SELECT md5(jsonb_agg(to_jsonb(item) ORDER BY n)::text) FROM item WHERE n < 5000;
SELECT count(*) FROM item WHERE name ~ '(9+[0-8]){2}' AND note LIKE '%a%b%c%';
DO $$ BEGIN FOR i IN 1..500 LOOP
    EXECUTE format('UPDATE item SET note = note || %L WHERE n = %s', i, i);
END LOOP; END $$;
DELETE FROM item WHERE n % 3 = 0;
VACUUM FULL item;
SELECT count(*), md5(string_agg(note, '' ORDER BY n)) FROM item;
END

database initdb "$work/libhakmem.so" "$bin/initdb" -D "$work/database/cluster" -U owner \
    -A trust -N --locale=C -E UTF8
served initdb
cp -a "$work/database/cluster" "$work/database/spare"

starts plain ''
ask -f "$work/queries.sql" >"$work/plain.answers"
ends INT
rm -rf "$work/database/cluster"
mv "$work/database/spare" "$work/database/cluster"

starts postgres "$work/libhakmem.so"
ask -f "$work/queries.sql" >"$work/postgres.answers"
check "there are answers" [ "$(wc -l <"$work/postgres.answers")" -ge 25 ]
check "the answers are the same" cmp "$work/plain.answers" "$work/postgres.answers"
mapped

if full; then transactions=5000; else transactions=250; fi
"$bin/pgbench" -h "$work/database" -U owner -i -q postgres >"$work/init.out" 2>&1 ||
    fail "pgbench -i: $(cat "$work/init.out")"
for mode in simple prepared; do
    "$bin/pgbench" -h "$work/database" -U owner -n -c 4 -j 2 -t $transactions -M $mode postgres \
        >"$work/bench.out" 2>&1 || fail "pgbench $mode: $(cat "$work/bench.out")"
    check "$mode: all transactions are done" grep -q \
        "processed: $((transactions * 4))/$((transactions * 4))" "$work/bench.out"
done
sums='SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM
    pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), sum(delta), count(*)
    FROM pgbench_history'
ask -c "$sums" >"$work/sums"
check "every account of the money agrees: $(cat "$work/sums")" \
    awk -F '|' -v count=$((transactions * 8)) \
    '{ exit !($1 == $2 && $2 == $3 && $3 == $4 && $5 == count) }' "$work/sums"
ends INT
mv "$work/database/postgres.stats" "$work/postgres.stats"
served postgres
check "the backends came to hakmem" [ "$(reports postgres)" -ge 12 ]

# Killed in the middle: the next server finds everything.
starts killed "$work/libhakmem.so"
ask -c 'UPDATE item SET kind = kind + 1' >/dev/null
all=$(processes "$server_process")
kill -KILL "$server_process"
wait "$server" || :
server=
gone() {
    for process in $all; do
        ! grep -q . "/proc/$process/maps" || return 1
    done
}
becomes "its processes are gone" gone
rm -f "$work/database/cluster/postmaster.pid" "$work/database/.s.PGSQL.5432.lock"
starts recovered "$work/libhakmem.so"
equal "what was committed is there" "$(ask -c "$sums")" "$(cat "$work/sums")"
equal "the last change is, too" "$(ask -c 'SELECT min(kind) FROM item')" 1
ends INT
mv "$work/database/recovered.stats" "$work/recovered.stats"
served recovered
