/* SPDX-License-Identifier: MIT */
/* tests/preload/late_cpp.c - a program in C loads a library in C++, and with it the C++ library:
 * what operator new cannot have is bad_alloc there, or NULL, and the new_handler is called. If this
 * fails, python3 aborts where a module of its would have said MemoryError. */
#include "program.h"

static void *load(const char *symbol)
{
    return dlsym(load_beside("libpreload_late.so", RTLD_NOW | RTLD_LOCAL), symbol);
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
