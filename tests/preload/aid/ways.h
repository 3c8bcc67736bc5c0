/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/ways.h - for programs that do on a word what no program should do. */
#ifndef TESTS_PRELOAD_AID_WAYS_H
#define TESTS_PRELOAD_AID_WAYS_H

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* In a function that has the word in `way`. */
#define ON(word, ...)                                                                              \
    if (strcmp(way, word) == 0) {                                                                  \
        __VA_ARGS__;                                                                               \
    }

/* The compiler does not know where it leads. */
static inline char *hidden(void *address)
{
    __asm__("" : "+r"(address));
    return address;
}

static inline void put(char *address)
{
    *(volatile char *)hidden(address) = 1;
}

static inline void get(char *address)
{
    (void)*(volatile char *)hidden(address);
}

/* To the end of the stack. */
static inline int dive(int depth)
{
    volatile char frame[1024];
    memset((char *)frame, depth, sizeof frame);
    return depth < 1 << 30 ? dive(depth + 1) + frame[0] : 0;
}

/* In a thread, to its end. */
static inline void run(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, argument) != 0 || pthread_join(thread, NULL) != 0)
        _exit(93);
}

#endif
