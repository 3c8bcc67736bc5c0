# SPDX-License-Identifier: MIT
# hakmem profile of a process with many libraries: each has its name, and where there are too many
# that is told.
. "$(dirname "$0")/lib.sh"
needs cc jq mkfifo seq
cat >"$work/part.c" <<'C'
#include <stdlib.h>
void *volatile part_kept;
void part(void) { part_kept = malloc(100000); }
C
cat >"$work/host.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
/* Loads so many parts of a folder with each number that it reads. */
int main(int count, char **arguments)
{
    char line[32], path[4096];
    for (int i = 0; puts("ready"), fflush(stdout), fgets(line, sizeof line, stdin) != NULL;)
        for (int end = i + atoi(line); i < end; i++) {
            snprintf(path, sizeof path, "%s/part%d.so", arguments[count - 1], i);
            void *part = dlopen(path, RTLD_NOW);
            if (part == NULL)
                return 1;
            ((void (*)(void))dlsym(part, "part"))();
        }
    return 0;
}
C
mkdir "$work/parts"
cc -shared -fPIC -g -O1 -o "$work/part.so" "$work/part.c"
cc -g -O1 -o "$work/host" "$work/host.c" -ldl
for i in $(seq 0 549); do cp "$work/part.so" "$work/parts/part$i.so"; done

mkfifo "$work/in"
HAKMEM_HEAP_PROFILE=on HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=2048 \
    LD_PRELOAD="$PRELOAD_LIB" "$work/host" "$work/parts" <"$work/in" >"$work/said" &
host_pid=$!
exec 7>"$work/in"
at_end() { kill -KILL "$host_pid" 2>/dev/null || :; }
# load COUNT TURN: so many more, in that turn.
has_said() { [ "$(grep -c ready "$work/said")" -gt "$1" ]; }
load() {
    echo "$1" >&7
    becomes "the host has loaded $1 more" has_said "$2"
}

load 300 1
asked many 0 profile "$host_pid" --json
parts='[.modules[].path | select(test("/part[0-9]+[.]so$"))] | unique | length'
equal "all libraries are known" "$(jq "$parts" "$work/many.out")" 300
equal "and those that stacks lead through" \
    "$(jq '[.sites[].stack[0] | select(.function == "part").module] | unique | length' \
        "$work/many.out")" 300
equal "none was lost" "$(jq .lost_modules "$work/many.out")" 0
asked many_table 0 profile "$host_pid"
check "nothing is missing" sh -c '! grep -q "found no room" "$0"' "$work/many_table.out"

load 250 2
asked more 0 profile "$host_pid"
shows more '^some libraries found no room: functions have no names, or those of others$'
asked more_json 0 profile "$host_pid" --json
check "some were lost" [ "$(jq .lost_modules "$work/more_json.out")" -gt 0 ]
exec 7>&-
wait "$host_pid" || fail "the host failed"

# A library that was loaded by a relative name has its whole name, wherever the process has gone.
cat >"$work/goes.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    void *part = dlopen("parts/part7.so", RTLD_NOW);
    if (part == NULL || chdir("/") != 0)
        return 1;
    for (int i = 0; i < 2; i++)
        ((void (*)(void))dlsym(part, "part"))();
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
C
cc -g -O0 -o "$work/goes" "$work/goes.c" -ldl
(cd "$work" && HAKMEM_HEAP_PROFILE=on HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=2048 \
    LD_PRELOAD="$PRELOAD_LIB" exec ./goes <in >goes.out) &
host_pid=$!
exec 7>"$work/in"
becomes "it has gone" grep -q ready "$work/goes.out"
asked goes_json 0 profile "$host_pid" --json
part='first(.sites[].stack[0] | select(.function == "part")) | .module'
equal "of which library it is" "$(jq -r "$part" "$work/goes_json.out")" "$work/parts/part7.so"
equal "which is there once" \
    "$(jq '[.modules[].path | select(test("part7"))] | length' "$work/goes_json.out")" 1
echo >&7
exec 7>&-
wait "$host_pid" || fail "the host that goes failed"

# Two libraries, one after the other at one address: the later one names its functions, as the
# manual says.
cat >"$work/turns.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        void *part = dlopen(arguments[i], RTLD_NOW);
        if (part == NULL)
            return 1;
        void *work = dlsym(part, "work");
        printf("%p\n", work);
        ((void (*)(void))work)();
        dlclose(part);
    }
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
C
for turn in early late; do
    sed "s/part_kept/${turn}_kept/; s/part(/${turn}_part(/" "$work/part.c" >"$work/$turn.c"
    echo "void work(void) { ${turn}_part(); __asm__ volatile(\"\"); }" >>"$work/$turn.c"
done
sed -i 's/^void late_part/int apart(int x) { return x * 3; }\n&/' "$work/late.c"
for turn in early late; do
    cc -shared -fPIC -g -O1 -fno-inline -o "$work/$turn.so" "$work/$turn.c"
done
cc -g -O1 -o "$work/turns" "$work/turns.c" -ldl
HAKMEM_HEAP_PROFILE=on HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=2048 \
    LD_PRELOAD="$PRELOAD_LIB" "$work/turns" "$work/early.so" "$work/late.so" \
    <"$work/in" >"$work/turns.out" &
host_pid=$!
exec 7>"$work/in"
becomes "both had their turn" grep -q ready "$work/turns.out"
equal "at one place" "$(sed '/ready/d; s/...$//' "$work/turns.out" | sort -u | wc -l)" 1
asked turns_json 0 profile "$host_pid" --json
late='.sites[].stack | map(.function) | select(.[0:3] == ["late_part", "work", "main"])'
check "the later one's functions have their names" [ -n "$(jq "$late" "$work/turns_json.out")" ]
echo >&7
exec 7>&-
wait "$host_pid" || fail "the libraries' host failed"
