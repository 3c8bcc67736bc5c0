// SPDX-License-Identifier: MIT
// tests/preload/new_handler.hpp - operator new that is out of memory: what it throws, and a handler
// that lets it try three times.
#ifndef TESTS_PRELOAD_NEW_HANDLER_HPP
#define TESTS_PRELOAD_NEW_HANDLER_HPP

#include <new>

template <class Body> bool throws_bad_alloc(Body body)
{
    try {
        body();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

static unsigned handler_calls;

static inline void give_up_at_the_third_call()
{
    if (++handler_calls == 3)
        std::set_new_handler(nullptr);
}

#endif
