/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bounds.h"

/* libc gets the end of the block as its limit, so nothing is written behind it; the length that
 * libc returns says whether the program's call would have passed it. A limit of the program's
 * beyond the block is no fault by itself. */
static void check_length(const char *function, const char *to, size_t room, size_t most, int length,
                         const void *caller)
{
    size_t bytes = (size_t)length + 1;
    if (bytes > most)
        bytes = most;
    if (length >= 0 && bytes > room)
        hak_bounds_stop(function, HAKMEM_WRITE, to, bytes, caller);
}

static int print(const char *function, char *to, size_t most, const char *format, va_list values,
                 const void *caller)
{
    size_t room = room_at(to);
    if (HAK_LIKELY(most <= room))
        return NEXT(vsnprintf)(to, most, format, values);
    int length = NEXT(vsnprintf)(to, room, format, values);
    check_length(function, to, room, most, length, caller);
    return length;
}

static int print_fortified(const char *function, char *to, size_t most, int flag, size_t known,
                           const char *format, va_list values, const void *caller)
{
    size_t room = room_at(to);
    if (HAK_LIKELY(most <= room || most > known)) /* the latter is libc's to report */
        return NEXT(__vsnprintf_chk)(to, most, flag, known, format, values);
    int length = NEXT(__vsnprintf_chk)(to, room, flag, known, format, values);
    check_length(function, to, room, most, length, caller);
    return length;
}

static int print_unbounded(const char *function, char *to, const char *format, va_list values,
                           const void *caller)
{
    if (room_at(to) == SIZE_MAX)
        return NEXT(vsprintf)(to, format, values);
    return print(function, to, SIZE_MAX, format, values, caller);
}

static int print_unbounded_fortified(const char *function, char *to, int flag, size_t known,
                                     const char *format, va_list values, const void *caller)
{
    if (room_at(to) >= known) /* libc's limit is not beyond the block */
        return NEXT(__vsprintf_chk)(to, flag, known, format, values);
    return print_fortified(function, to, known, flag, known, format, values, caller);
}

int vsnprintf(char *to, size_t bytes, const char *format, va_list values)
{
    return print(__func__, to, bytes, format, values, __builtin_return_address(0));
}

int snprintf(char *to, size_t bytes, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = print(__func__, to, bytes, format, values, __builtin_return_address(0));
    va_end(values);
    return length;
}

int vsprintf(char *to, const char *format, va_list values)
{
    return print_unbounded(__func__, to, format, values, __builtin_return_address(0));
}

int sprintf(char *to, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = print_unbounded(__func__, to, format, values, __builtin_return_address(0));
    va_end(values);
    return length;
}

int __vsnprintf_chk(char *to, size_t bytes, int flag, size_t known, const char *format,
                    va_list values)
{
    return print_fortified(__func__, to, bytes, flag, known, format, values,
                           __builtin_return_address(0));
}

int __snprintf_chk(char *to, size_t bytes, int flag, size_t known, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = print_fortified(__func__, to, bytes, flag, known, format, values,
                                 __builtin_return_address(0));
    va_end(values);
    return length;
}

int __vsprintf_chk(char *to, int flag, size_t known, const char *format, va_list values)
{
    return print_unbounded_fortified(__func__, to, flag, known, format, values,
                                     __builtin_return_address(0));
}

int __sprintf_chk(char *to, int flag, size_t known, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = print_unbounded_fortified(__func__, to, flag, known, format, values,
                                           __builtin_return_address(0));
    va_end(values);
    return length;
}
