/* SPDX-License-Identifier: MIT */
/* os/shared.h - memory that other processes of the same user can read.
 *
 * Owns        nothing.
 * Invariants  no function changes errno or allocates. The file is new, of mode 0600, and never what
 *             a link leads to; its memory is there before anybody writes to it. Files that others
 *             put there under such names are left alone, whatever they are.
 * Threads     any.
 * Tests       tests/unit/os/shared_test.c, tests/unit/os/shared_sweep_test.c
 */
#ifndef HAK_OS_SHARED_H
#define HAK_OS_SHARED_H

#include "base/compiler.h"

struct shared_path {
    char name[64];
};

/* `prefix`, the number, `suffix`. */
struct shared_path hak_os_shared_path(const char *prefix, uint32_t pid, const char *suffix);

/* A file that is created. */
struct shared_made {
    size_t space_at; /* asked: where files of this kind have their writer's hak_os_pid_space */
    int error;       /* why it could not be */
    uint64_t inode;  /* what tells it from a later one of its name */
};

/* Creates the file `path` of `bytes` zeros, replacing one of that name that may be removed, and
 * maps it. NULL: `made` says why not; EFBIG: the process may have no file of that size; EEXIST: a
 * process of another space of numbers writes to the one of that name. */
void *hak_os_shared_create(const char *path, size_t bytes, struct shared_made *made);

/* The same, but memory is allocated only for the first `front_bytes`. */
void *hak_os_shared_create_growing(const char *path, size_t bytes, size_t front_bytes,
                                   struct shared_made *made);

/* Says on standard error that `path` was EEXIST. */
void hak_os_shared_say_taken(const char *path);

/* Allocates memory for a part of it; false: there is none, and touching it is fatal. */
bool hak_os_shared_back(void *start, size_t bytes);

/* Removes the file that was made, unless another one has its name; the mapping stays. */
void hak_os_shared_remove(const char *path, const struct shared_made *made);

/* What follows the number of a file that was set aside. */
#define HAK_SHARED_LAST ".last"

/* A file that is looked at: open for reading, with the first bytes of it. */
struct shared_file {
    const void *head;
    uint32_t number;
    int fd;
};
typedef bool shared_judge(const struct shared_file *file, const void *context);

/* Renames the file of that number to one with HAK_SHARED_LAST, in the place of an earlier one, if
 * it is a regular file of this user and `is_worth` it by its first `head_bytes` bytes (256 at
 * most). */
void hak_os_shared_set_aside(const char *prefix, uint32_t number, size_t head_bytes,
                             shared_judge *is_worth, const void *context);

/* Moves a mapping of `bytes` to the place of another one, which is mapped until then; false: the
 * kernel has no memory for that. */
bool hak_os_shared_move(void *from, void *to, size_t bytes);

/* Ends the mapping of `bytes`. */
void hak_os_shared_unmap(void *start, size_t bytes);

/* Of the regular files of this user whose path is `prefix` and a number, or that were set aside,
 * removes those that `is_left` takes for left, by their first `head_bytes` bytes (256 at most), and
 * empty ones of absent processes; returns how many. Looks at a bounded number of them, follows no
 * link. While another thread does this, it does nothing. */
uint32_t hak_os_shared_sweep(const char *prefix, size_t head_bytes, shared_judge *is_left,
                             const void *context);

/* True when it is certain that the process that wrote the file is dead: no process maps it to
 * write, wherever its number counts (fcntl(2), F_SETLEASE). Where the kernel does not tell, by that
 * number, its space of numbers and its start; of other spaces nothing is certain then. */
bool hak_os_shared_is_left(const struct shared_file *file, uint64_t pid_space,
                           uint64_t start_ticks);

/* True when it is certain that a process of a space other than this one, `pid_space` as it wrote,
 * maps the file to write, or has it open to. In this space the number tells more: its program may
 * have been replaced by another one while a child still has the mapping. */
bool hak_os_shared_is_taken(int fd, uint64_t pid_space);

/* When a process (0: this one) was started, in clock ticks since the machine was; 0: /proc does not
 * say. */
uint64_t hak_os_start_ticks(uint32_t pid);

/* False when it is certain that no process has this id. */
bool hak_os_is_process(uint32_t pid);

/* The namespace that process ids are of, a number; 0: /proc does not say. */
uint64_t hak_os_pid_space(void);

#endif
