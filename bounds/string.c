/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bounds.h"

/* Until the constructor has run, libc's functions may not be called (bounds.h). */
static size_t length_up_to(const char *string, size_t most)
{
    if (HAK_LIKELY(hak_bounds_is_checking))
        return most == SIZE_MAX ? strlen(string) : strnlen(string, most);
    size_t length = 0;
    while (length < most && string[length] != '\0')
        length++;
    return length;
}

static void copy(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[i];
}

/* Up to `most` bytes of a string and a NUL are written at the beginning of `to`, or behind the
 * string there. */
enum place { AT_START, AT_END };
static void check_text(const char *function, char *to, enum place place, const char *from,
                       size_t most, const void *caller)
{
    size_t room = room_at(to);
    if (HAK_LIKELY(room == SIZE_MAX))
        return;
    size_t at = place == AT_END ? length_up_to(to, room) : 0;
    size_t left = room - at;
    size_t looked_at = left < most ? left : most;
    if (length_up_to(from, looked_at) < left)
        return;
    hak_bounds_stop(function, HAKMEM_WRITE, to, at + length_up_to(from, most) + 1, caller);
}

#define CHECK_TEXT(to, place, from, most)                                                          \
    check_text(__func__, to, place, from, most, __builtin_return_address(0))

char *strcpy(char *to, const char *from)
{
    CHECK_TEXT(to, AT_START, from, SIZE_MAX);
    if (HAK_LIKELY(hak_bounds_next.strcpy != NULL))
        return hak_bounds_next.strcpy(to, from);
    copy(to, from, length_up_to(from, SIZE_MAX) + 1);
    return to;
}

char *stpcpy(char *to, const char *from)
{
    CHECK_TEXT(to, AT_START, from, SIZE_MAX);
    if (HAK_LIKELY(hak_bounds_next.stpcpy != NULL))
        return hak_bounds_next.stpcpy(to, from);
    size_t length = length_up_to(from, SIZE_MAX);
    copy(to, from, length + 1);
    return to + length;
}

char *strcat(char *to, const char *from)
{
    CHECK_TEXT(to, AT_END, from, SIZE_MAX);
    if (HAK_LIKELY(hak_bounds_next.strcat != NULL))
        return hak_bounds_next.strcat(to, from);
    copy(to + length_up_to(to, SIZE_MAX), from, length_up_to(from, SIZE_MAX) + 1);
    return to;
}

char *strncpy(char *to, const char *from, size_t bytes)
{
    CHECK_WRITE(to, bytes);
    if (HAK_LIKELY(hak_bounds_next.strncpy != NULL))
        return hak_bounds_next.strncpy(to, from, bytes);
    size_t length = length_up_to(from, bytes);
    copy(to, from, length);
    for (size_t i = length; i < bytes; i++)
        to[i] = '\0';
    return to;
}

char *strncat(char *to, const char *from, size_t bytes)
{
    CHECK_TEXT(to, AT_END, from, bytes);
    if (HAK_LIKELY(hak_bounds_next.strncat != NULL))
        return hak_bounds_next.strncat(to, from, bytes);
    size_t length = length_up_to(from, bytes);
    char *end = to + length_up_to(to, SIZE_MAX);
    copy(end, from, length);
    end[length] = '\0';
    return to;
}

char *__strcpy_chk(char *to, const char *from, size_t known)
{
    CHECK_TEXT(to, AT_START, from, SIZE_MAX);
    return NEXT(__strcpy_chk)(to, from, known);
}

char *__stpcpy_chk(char *to, const char *from, size_t known)
{
    CHECK_TEXT(to, AT_START, from, SIZE_MAX);
    return NEXT(__stpcpy_chk)(to, from, known);
}

char *__strcat_chk(char *to, const char *from, size_t known)
{
    CHECK_TEXT(to, AT_END, from, SIZE_MAX);
    return NEXT(__strcat_chk)(to, from, known);
}

char *__strncpy_chk(char *to, const char *from, size_t bytes, size_t known)
{
    CHECK_WRITE(to, bytes);
    return NEXT(__strncpy_chk)(to, from, bytes, known);
}

char *__strncat_chk(char *to, const char *from, size_t bytes, size_t known)
{
    CHECK_TEXT(to, AT_END, from, bytes);
    return NEXT(__strncat_chk)(to, from, bytes, known);
}
