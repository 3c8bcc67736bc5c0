/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bounds.h"

/* Loops, for before the next definitions are known. */

static void copy_up(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[i];
}

static void copy_down(char *to, const char *from, size_t bytes)
{
    for (size_t i = bytes; i > 0; i--)
        to[i - 1] = from[i - 1];
}

/* memcpy is memmove: programs linked before glibc 2.14 call it for ranges that overlap. */
HAK_INLINE void *move(void *to, const void *from, size_t bytes)
{
    if (HAK_LIKELY(hak_bounds_next.memmove != NULL))
        return hak_bounds_next.memmove(to, from, bytes);
    if ((uintptr_t)to < (uintptr_t)from)
        copy_up(to, from, bytes);
    else
        copy_down(to, from, bytes);
    return to;
}

HAK_INLINE void *fill(void *to, int value, size_t bytes)
{
    if (HAK_LIKELY(hak_bounds_next.memset != NULL))
        return hak_bounds_next.memset(to, value, bytes);
    for (size_t i = 0; i < bytes; i++)
        ((char *)to)[i] = (char)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    CHECK_WRITE(to, bytes);
    CHECK_READ(from, bytes);
    return move(to, from, bytes);
}

void *memmove(void *to, const void *from, size_t bytes)
{
    CHECK_WRITE(to, bytes);
    CHECK_READ(from, bytes);
    return move(to, from, bytes);
}

void *mempcpy(void *to, const void *from, size_t bytes)
{
    CHECK_WRITE(to, bytes);
    CHECK_READ(from, bytes);
    return (char *)move(to, from, bytes) + bytes;
}

void *memset(void *to, int value, size_t bytes)
{
    CHECK_WRITE(to, bytes);
    return fill(to, value, bytes);
}

/* What the compiler's size forbids is libc's to report. */

void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t known)
{
    CHECK_WRITE(to, bytes);
    CHECK_READ(from, bytes);
    return bytes <= known ? move(to, from, bytes) : NEXT(__memcpy_chk)(to, from, bytes, known);
}

void *__memmove_chk(void *to, const void *from, size_t bytes, size_t known)
{
    CHECK_WRITE(to, bytes);
    CHECK_READ(from, bytes);
    return bytes <= known ? move(to, from, bytes) : NEXT(__memmove_chk)(to, from, bytes, known);
}

void *__mempcpy_chk(void *to, const void *from, size_t bytes, size_t known)
{
    CHECK_WRITE(to, bytes);
    CHECK_READ(from, bytes);
    if (bytes > known)
        return NEXT(__mempcpy_chk)(to, from, bytes, known);
    return (char *)move(to, from, bytes) + bytes;
}

void *__memset_chk(void *to, int value, size_t bytes, size_t known)
{
    CHECK_WRITE(to, bytes);
    return bytes <= known ? fill(to, value, bytes) : NEXT(__memset_chk)(to, value, bytes, known);
}
