/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/identity.h"

#include "base/atomic.h"
#include "os/next_symbol.h"

#include <grp.h>
#include <sched.h>
#include <unistd.h>

static _Atomic(void (*)(void)) watch_before;
static _Atomic(void (*)(void)) watch_after;

void hak_os_identity_watch(void (*before)(void), void (*after)(void))
{
    hak_store_relaxed(&watch_after, after);
    /* release: partner is the acquire in hak_os_identity_begin, which then has the other, too */
    hak_store_release(&watch_before, before);
}

void (*hak_os_identity_begin(void))(void)
{
    /* acquire: partner is the release in hak_os_identity_watch */
    void (*before)(void) = hak_load_acquire(&watch_before);
    if (before == NULL)
        return NULL;
    before();
    return hak_load_relaxed(&watch_after);
}

#if HAK_SHARED

/* libc's function of that name, with `before` and `after` around it. */
#define AROUND(name, parameters, arguments)                                                        \
    HAK_EXPORT int name parameters                                                                 \
    {                                                                                              \
        static _Atomic(next_function *) known;                                                     \
        next_function *next = hak_next_function(&known, #name);                                    \
        if (next == NULL)                                                                          \
            return -1;                                                                             \
        void (*after)(void) = hak_os_identity_begin();                                             \
        int result = ((int(*) parameters)next)arguments;                                           \
        if (after != NULL)                                                                         \
            after();                                                                               \
        return result;                                                                             \
    }

/* Not every libc declares it. */
int capset(void *header, const void *data);

AROUND(setuid, (uid_t user), (user))
AROUND(seteuid, (uid_t user), (user))
AROUND(setreuid, (uid_t user, uid_t effective), (user, effective))
AROUND(setresuid, (uid_t user, uid_t effective, uid_t saved), (user, effective, saved))
AROUND(setgid, (gid_t group), (group))
AROUND(setegid, (gid_t group), (group))
AROUND(setregid, (gid_t group, gid_t effective), (group, effective))
AROUND(setresgid, (gid_t group, gid_t effective, gid_t saved), (group, effective, saved))
AROUND(setgroups, (size_t count, const gid_t *groups), (count, groups))
AROUND(initgroups, (const char *user, gid_t group), (user, group))
AROUND(capset, (void *header, const void *data), (header, data))
AROUND(unshare, (int flags), (flags))
AROUND(setns, (int fd, int kind), (fd, kind))

#endif
