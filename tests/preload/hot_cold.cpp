// SPDX-License-Identifier: MIT
// tests/preload/hot_cold.cpp - the forms of operator new that LLVM and google/tcmalloc add: with a
// hint how hot a block will be, and with the size that came out. A program that is compiled for
// them does not link, or gets them from another allocator, if this fails.
#include "new_handler.hpp"
#include "program.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <malloc.h>
#include <new>
#include <set>
#include <unistd.h>

enum class __hot_cold_t : std::uint8_t {};

void *operator new(std::size_t, __hot_cold_t) noexcept(false);
void *operator new[](std::size_t, __hot_cold_t) noexcept(false);
void *operator new(std::size_t, const std::nothrow_t &, __hot_cold_t) noexcept;
void *operator new[](std::size_t, const std::nothrow_t &, __hot_cold_t) noexcept;
void *operator new(std::size_t, std::align_val_t, __hot_cold_t) noexcept(false);
void *operator new[](std::size_t, std::align_val_t, __hot_cold_t) noexcept(false);
void *operator new(std::size_t, std::align_val_t, const std::nothrow_t &, __hot_cold_t) noexcept;
void *operator new[](std::size_t, std::align_val_t, const std::nothrow_t &, __hot_cold_t) noexcept;

struct __sized_ptr_t {
    void *p;
    std::size_t n;
};
extern "C" {
__sized_ptr_t __size_returning_new(std::size_t);
__sized_ptr_t __size_returning_new_hot_cold(std::size_t, __hot_cold_t);
__sized_ptr_t __size_returning_new_aligned(std::size_t, std::align_val_t);
__sized_ptr_t __size_returning_new_aligned_hot_cold(std::size_t, std::align_val_t, __hot_cold_t);
}

namespace
{

std::size_t hidden_size(std::size_t bytes)
{
    __asm__ volatile("" : "+r"(bytes));
    return bytes;
}

constexpr std::align_val_t wide{256};
constexpr std::size_t sizes[] = {0, 1, 8, 100, 5000, 100000, 3000000};

void check_block(void *block, std::size_t bytes, std::size_t alignment)
{
    CHECK(block != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    CHECK(malloc_usable_size(block) >= bytes);
    std::memset(block, 1, bytes);
}

void hints_are_taken_with_every_form()
{
    for (int hint : {0, 1, 128, 255})
        for (std::size_t bytes : sizes) {
            auto heat = static_cast<__hot_cold_t>(hint);
            void *single[] = {operator new(bytes, heat), operator new(bytes, std::nothrow, heat),
                                                         operator new(bytes, wide, heat),
                                                         operator new(bytes, wide, std::nothrow,
                                                                      heat)};
            void *array[] = {operator new[](bytes, heat), operator new[](bytes, std::nothrow, heat),
                                                          operator new[](bytes, wide, heat),
                                                          operator new[](bytes, wide, std::nothrow,
                                                                         heat)};
            for (int i = 0; i < 4; i++) {
                check_block(single[i], bytes, i < 2 ? 8 : 256);
                check_block(array[i], bytes, i < 2 ? 8 : 256);
            }
            for (int i = 0; i < 2; i++) {
                ::operator delete(single[i], bytes);
                ::operator delete[](array[i], bytes);
                ::operator delete(single[i + 2], bytes, wide);
                ::operator delete[](array[i + 2], bytes, wide);
            }
        }
}

void cold_blocks_lie_apart_from_hot_ones()
{
    std::set<std::uintptr_t> granules[2]; // of 64 KiB
    for (int i = 0; i < 2000; i++) {
        for (int hint : {0, 1, 127, 128, 254}) {
            void *block = operator new(100, static_cast<__hot_cold_t>(hint));
            granules[hint < 128].insert(reinterpret_cast<std::uintptr_t>(block) >> 16);
            if (i % 2 == 0)
                ::operator delete(block);
        }
    }
    CHECK(!granules[0].empty() && !granules[1].empty());
    for (std::uintptr_t granule : granules[0])
        CHECK(granules[1].count(granule) == 0);
}

void a_size_that_comes_out_is_usable_whole()
{
    for (std::size_t bytes : sizes) {
        auto heat = static_cast<__hot_cold_t>(7);
        __sized_ptr_t blocks[] = {__size_returning_new(bytes),
                                  __size_returning_new_hot_cold(bytes, heat),
                                  __size_returning_new_aligned(bytes, wide),
                                  __size_returning_new_aligned_hot_cold(bytes, wide, heat)};
        for (int i = 0; i < 4; i++) {
            CHECK(blocks[i].n >= bytes && blocks[i].n == malloc_usable_size(blocks[i].p));
            check_block(blocks[i].p, blocks[i].n, i < 2 ? 8 : 256);
        }
        for (int i = 0; i < 2; i++) {
            ::operator delete(blocks[i].p, blocks[i].n);
            ::operator delete(blocks[i + 2].p, blocks[i + 2].n, wide);
        }
    }
}

void out_of_memory_throws_or_is_null()
{
    const std::size_t absurd = hidden_size(PTRDIFF_MAX / 2);
    auto heat = static_cast<__hot_cold_t>(0);
    CHECK(throws_bad_alloc([=] { operator new(absurd, heat); }));
    CHECK(throws_bad_alloc([=] { operator new[](absurd, wide, heat); }));
    CHECK(throws_bad_alloc([=] { __size_returning_new(absurd); }));
    CHECK(throws_bad_alloc([=] { __size_returning_new_aligned(absurd, wide); }));
    CHECK(operator new(absurd, std::nothrow, heat) == nullptr);
    CHECK(operator new[](absurd, wide, std::nothrow, heat) == nullptr);
    std::set_new_handler(give_up_at_the_third_call);
    CHECK(throws_bad_alloc([=] { __size_returning_new_hot_cold(absurd, heat); }));
    CHECK(handler_calls == 3);
}

} // namespace

int main(int, char **arguments)
{
    begin_unguarded(arguments);
    alarm(100);
    hints_are_taken_with_every_form();
    cold_blocks_lie_apart_from_hot_ones();
    a_size_that_comes_out_is_usable_whole();
    out_of_memory_throws_or_is_null();
    return check_end();
}
