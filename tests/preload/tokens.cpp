// SPDX-License-Identifier: MIT
// tests/preload/tokens.cpp - what Clang calls with -fsanitize=alloc-token, by both of its ABIs, and
// hakmem's own functions for blocks that stay: partitions lie apart. A compiler that has the option
// is not needed: the program declares the functions as Clang does.
#include "new_handler.hpp"
#include "program.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <set>
#include <unistd.h>

#define HAKMEM_WEAK
#include <hakmem/hakmem.h>

#define SIZE_ARGUMENT , std::size_t
extern "C" {
#define FORMS(prefix, ...)                                                                         \
    void *prefix##malloc(std::size_t __VA_ARGS__);                                                 \
    void *prefix##calloc(std::size_t, std::size_t __VA_ARGS__);                                    \
    void *prefix##realloc(void *, std::size_t __VA_ARGS__);                                        \
    void *prefix##reallocarray(void *, std::size_t, std::size_t __VA_ARGS__);                      \
    void *prefix##aligned_alloc(std::size_t, std::size_t __VA_ARGS__);                             \
    void *prefix##memalign(std::size_t, std::size_t __VA_ARGS__);                                  \
    void *prefix##valloc(std::size_t __VA_ARGS__);                                                 \
    void *prefix##pvalloc(std::size_t __VA_ARGS__);                                                \
    int prefix##posix_memalign(void **, std::size_t, std::size_t __VA_ARGS__);                     \
    void *prefix##_Znwm(std::size_t __VA_ARGS__);                                                  \
    void *prefix##_Znam(std::size_t __VA_ARGS__);                                                  \
    void *prefix##_ZnwmRKSt9nothrow_t(std::size_t, const void *__VA_ARGS__);                       \
    void *prefix##_ZnamRKSt9nothrow_t(std::size_t, const void *__VA_ARGS__);                       \
    void *prefix##_ZnwmSt11align_val_t(std::size_t, std::size_t __VA_ARGS__);                      \
    void *prefix##_ZnamSt11align_val_t(std::size_t, std::size_t __VA_ARGS__);                      \
    void *prefix##_ZnwmSt11align_val_tRKSt9nothrow_t(std::size_t, std::size_t,                     \
                                                     const void *__VA_ARGS__);                     \
    void *prefix##_ZnamSt11align_val_tRKSt9nothrow_t(std::size_t, std::size_t,                     \
                                                     const void *__VA_ARGS__);
FORMS(__alloc_token_, SIZE_ARGUMENT)
FORMS(__alloc_token_0_)
FORMS(__alloc_token_1_)
}

namespace
{

constexpr std::size_t odd_high = std::size_t{1} << 63 | 4; // a type with pointers
constexpr std::size_t even_low = 6;

// Every granule of 64 KiB has blocks of one partition.
std::set<std::uintptr_t> granules[2];

void note(void *block, std::size_t bytes, int partition)
{
    CHECK(block != nullptr);
    CHECK(malloc_usable_size(block) >= bytes);
    std::memset(block, 1, bytes);
    std::uintptr_t granule = reinterpret_cast<std::uintptr_t>(block) >> 16;
    granules[partition].insert(granule);
    CHECK(granules[1 - partition].count(granule) == 0);
}

void *aligned(int status, void *block)
{
    CHECK(status == 0);
    return block;
}

// Each form once, with what frees its blocks.
#define EACH_FORM(prefix, partition, ...)                                                          \
    do {                                                                                           \
        void *out = nullptr;                                                                       \
        std::size_t bytes = 48 + (i % 5) * 300, wide = 64;                                         \
        const void *none = &std::nothrow;                                                          \
        void *grown = prefix##malloc(bytes __VA_ARGS__);                                           \
        note(grown, bytes, partition);                                                             \
        grown = prefix##realloc(grown, 2000 __VA_ARGS__);                                          \
        note(grown, 2000, partition);                                                              \
        grown = prefix##reallocarray(grown, 3, 1000 __VA_ARGS__);                                  \
        note(grown, 3000, partition);                                                              \
        std::free(grown);                                                                          \
        grown = prefix##realloc(nullptr, bytes __VA_ARGS__);                                       \
        note(grown, bytes, partition);                                                             \
        std::free(grown);                                                                          \
        char *zero = static_cast<char *>(prefix##calloc(3, bytes __VA_ARGS__));                    \
        for (std::size_t k = 0; k < 3 * bytes; k++)                                                \
            if (zero[k] != 0)                                                                      \
                CHECK(zero[k] == 0);                                                               \
        note(zero, 3 * bytes, partition);                                                          \
        std::free(zero);                                                                           \
        void *blocks[] = {prefix##aligned_alloc(wide, bytes __VA_ARGS__),                          \
                          prefix##memalign(wide, bytes __VA_ARGS__),                               \
                          aligned(prefix##posix_memalign(&out, wide, bytes __VA_ARGS__), out)};    \
        blocks[2] = out;                                                                           \
        for (void *block : blocks) {                                                               \
            CHECK(reinterpret_cast<std::uintptr_t>(block) % wide == 0);                            \
            note(block, bytes, partition);                                                         \
            std::free(block);                                                                      \
        }                                                                                          \
        void *page = prefix##valloc(bytes __VA_ARGS__);                                            \
        CHECK(page != nullptr);                                                                    \
        std::free(page);                                                                           \
        page = prefix##pvalloc(bytes __VA_ARGS__);                                                 \
        CHECK(page != nullptr);                                                                    \
        std::free(page);                                                                           \
        void *one = prefix##_Znwm(bytes __VA_ARGS__);                                              \
        note(one, bytes, partition);                                                               \
        ::operator delete(one, bytes);                                                             \
        one = prefix##_ZnwmRKSt9nothrow_t(bytes, none __VA_ARGS__);                                \
        note(one, bytes, partition);                                                               \
        ::operator delete(one);                                                                    \
        void *many = prefix##_Znam(bytes __VA_ARGS__);                                             \
        note(many, bytes, partition);                                                              \
        ::operator delete[](many);                                                                 \
        many = prefix##_ZnamRKSt9nothrow_t(bytes, none __VA_ARGS__);                               \
        note(many, bytes, partition);                                                              \
        ::operator delete[](many);                                                                 \
        std::align_val_t at{wide};                                                                 \
        one = prefix##_ZnwmSt11align_val_t(bytes, wide __VA_ARGS__);                               \
        note(one, bytes, partition);                                                               \
        ::operator delete(one, at);                                                                \
        one = prefix##_ZnwmSt11align_val_tRKSt9nothrow_t(bytes, wide, none __VA_ARGS__);           \
        note(one, bytes, partition);                                                               \
        ::operator delete(one, at);                                                                \
        many = prefix##_ZnamSt11align_val_t(bytes, wide __VA_ARGS__);                              \
        note(many, bytes, partition);                                                              \
        ::operator delete[](many, at);                                                             \
        many = prefix##_ZnamSt11align_val_tRKSt9nothrow_t(bytes, wide, none __VA_ARGS__);          \
        note(many, bytes, partition);                                                              \
        ::operator delete[](many, at);                                                             \
    } while (0)
#define COMMA ,

void tokens_in_the_name_choose_the_partition()
{
    for (int i = 0; i < 50; i++) {
        EACH_FORM(__alloc_token_0_, 0);
        EACH_FORM(__alloc_token_1_, 1);
    }
}

void tokens_as_argument_choose_the_same_partitions()
{
    for (int i = 0; i < 50; i++) {
        EACH_FORM(__alloc_token_, 0, COMMA 0);
        EACH_FORM(__alloc_token_, 1, COMMA 1);
        EACH_FORM(__alloc_token_, 0, COMMA even_low);
        EACH_FORM(__alloc_token_, 1, COMMA odd_high);
        EACH_FORM(__alloc_token_, 0, COMMA(std::size_t{1} << 62 | 1));
    }
}

void malloc_is_the_ordinary_partition_and_blocks_that_stay_are_the_other()
{
    CHECK(hakmem_malloc_long != nullptr);
    for (int i = 0; i < 3000; i++) {
        void *first = std::malloc(100), *second = hakmem_malloc_long(100);
        note(first, 100, 0);
        note(second, 100, 1);
        void *third = hakmem_calloc_long(10, 10), *fourth = hakmem_aligned_alloc_long(128, 100);
        note(third, 100, 1);
        note(fourth, 100, 1);
        std::free(first);
        std::free(third);
        if (i % 2 == 0)
            std::free(second);
        std::free(fourth);
    }
}

void out_of_memory_is_reported_as_by_the_plain_forms()
{
    std::size_t absurd = PTRDIFF_MAX / 2;
    __asm__ volatile("" : "+r"(absurd));
    errno = 0;
    CHECK(__alloc_token_1_malloc(absurd) == nullptr && errno == ENOMEM);
    CHECK(__alloc_token_1_calloc(absurd, 3) == nullptr);
    errno = 0;
    CHECK(__alloc_token_1_aligned_alloc(3, 100) == nullptr && errno == EINVAL);
    void *out = nullptr;
    CHECK(__alloc_token_1_posix_memalign(&out, 4, 100) == EINVAL);
    CHECK(__alloc_token_1_posix_memalign(&out, 64, absurd) == ENOMEM && out == nullptr);
    CHECK(throws_bad_alloc([=] { __alloc_token_1__Znwm(absurd); }));
    CHECK(throws_bad_alloc([=] { __alloc_token_1__ZnamSt11align_val_t(absurd, 64); }));
    CHECK(__alloc_token_1__ZnwmRKSt9nothrow_t(absurd, &std::nothrow) == nullptr);
    std::set_new_handler(give_up_at_the_third_call);
    CHECK(throws_bad_alloc([=] { __alloc_token__Znam(absurd, 1); }));
    CHECK(handler_calls == 3);
}

void requests_above_4_kib_are_served_as_all_others()
{
    for (std::size_t bytes : {4097, 100000, 3000000}) {
        void *block = __alloc_token_1_malloc(bytes);
        CHECK(block != nullptr && malloc_usable_size(block) >= bytes);
        std::memset(block, 1, bytes);
        std::free(block);
    }
}

} // namespace

int main(int, char **arguments)
{
    begin_unguarded(arguments);
    alarm(100);
    tokens_in_the_name_choose_the_partition();
    tokens_as_argument_choose_the_same_partitions();
    malloc_is_the_ordinary_partition_and_blocks_that_stay_are_the_other();
    out_of_memory_is_reported_as_by_the_plain_forms();
    requests_above_4_kib_are_served_as_all_others();
    return check_end();
}
