/* SPDX-License-Identifier: MIT */
/* tests/attack/matrix/weakness.hpp - a kind of misuse.
 *
 * Owns        the size of a case's block, and what became of its misuse.
 * Invariants  one case a process, or all of them without their misuse.
 * Threads     one at a time.
 * Tests       tests/preload/weaknesses_preload.py
 */
#ifndef TESTS_ATTACK_MATRIX_WEAKNESS_HPP
#define TESTS_ATTACK_MATRIX_WEAKNESS_HPP

#include <cstddef>
#include <cstdlib>
#include <pthread.h>

enum { MOST_BYTES = 262144 };

/* Of the case's block. */
extern size_t bytes;

/* MOST_BYTES of the stack of main. */
extern char *stack_room;

/* What read or wrote last had no effect. */
extern bool in_vain;

struct weakness {
    int number; /* CWE */
    const char *name;
    char *(*source)();
    void (*sink)(char *block, bool wrong); /* uses the block, wrongly or not, and frees it */
};
extern const weakness weaknesses[];
extern const size_t weakness_count;

/* Before the first case. */
void begin(size_t block_bytes, char *room);

/* Frees the neighbours of the last case's blocks. */
void free_settlers();

/* The compiler must not know where it comes from. */
static inline char *hide(void *block)
{
    char *volatile hidden = static_cast<char *>(block);
    if (hidden == NULL)
        exit(3);
    return hidden;
}

/* To the end of the thread. */
static inline void run_thread(void *(*work)(void *), void *with)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, with) != 0 || pthread_join(thread, NULL) != 0)
        exit(3);
}

#endif
