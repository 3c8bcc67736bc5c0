// SPDX-License-Identifier: MIT
// tests/preload/aid/late.cpp - a C++ library for programs in C (tests/preload/late_cpp.c): what
// becomes of requests that cannot be had.
#include <cstddef>
#include <cstdint>
#include <new>

namespace
{

volatile std::size_t too_much = PTRDIFF_MAX - 100;
constexpr std::align_val_t wide{64};
int calls;

void give_up_at_once()
{
    calls++;
    std::set_new_handler(nullptr);
}

void throw_at_once()
{
    calls++;
    throw std::bad_alloc();
}

} // namespace

extern "C" int late_throws(int form)
{
    try {
        void *block = form == 0   ? ::operator new(too_much)
                      : form == 1 ? ::operator new[](too_much)
                                  : ::operator new(too_much, wide);
        return block == nullptr ? -1 : 0;
    } catch (const std::bad_alloc &) {
        return 1;
    }
}

extern "C" int late_handler_calls(int form, int throws)
{
    calls = 0;
    std::set_new_handler(throws ? throw_at_once : give_up_at_once);
    void *block = form == 0   ? ::operator new(too_much, std::nothrow)
                  : form == 1 ? ::operator new[](too_much, std::nothrow)
                              : ::operator new(too_much, wide, std::nothrow);
    std::set_new_handler(nullptr);
    return block == nullptr ? calls : -1;
}
