/* SPDX-License-Identifier: MIT */
/* tests/preload/late_cpp.c - a program in C loads a library in C++, and with it the C++ library:
 * what operator new cannot have is bad_alloc there, or NULL, and the new_handler is called. If this
 * fails, python3 aborts where a module of its would have said MemoryError. */
#include "program.h"

static void *load(const char *symbol)
{
    static void *library;
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    CHECK(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/') + 1, "libpreload_late.so");
    if (library == NULL)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        CHECK_FAILED("%s", dlerror());
    return dlsym(library, symbol);
}

static void need_preload(void)
{
    if (dlsym(RTLD_DEFAULT, "dlopen") == dlsym(RTLD_NEXT, "dlopen"))
        SKIP("hakmem is linked, which asks for no library that comes later");
}

TEST(what_cannot_be_had_is_thrown)
{
    need_preload();
    int (*throws)(int) = (int (*)(int))load("late_throws");
    for (int form = 0; form < 3; form++)
        CHECK_EQ(throws(form), 1);
}

TEST(the_handler_is_called_where_nothing_may_be_thrown)
{
    need_preload();
    int (*calls)(int, int) = (int (*)(int, int))load("late_handler_calls");
    for (int form = 0; form < 3; form++) {
        CHECK_EQ(calls(form, 0), 1);
        CHECK_EQ(calls(form, 1), 1);
    }
}
