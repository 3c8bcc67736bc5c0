// SPDX-License-Identifier: MIT
// tests/preload/replaced.cpp - a program that defines operator new and operator delete of one
// object, and of one with an alignment, and no other form: those for arrays, with a size, and those
// that do not throw call the program's. If this fails, a program that counts its blocks counts
// wrong, and one that keeps a header before each of them dies of an "invalid free".
//
// Source: C++20 [new.delete.single], [new.delete.array].
#include "program.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace
{

constexpr std::size_t header_bytes = 256;
constexpr std::size_t wide = 128;
constexpr std::align_val_t wide_tag{wide};
constexpr std::uint64_t magic = 0x123456789abcdef0;

long live;
bool is_refused;

void *take(std::size_t bytes, std::size_t alignment)
{
    if (is_refused)
        throw std::bad_alloc();
    void *block = nullptr;
    if (posix_memalign(&block, alignment, header_bytes + bytes) != 0)
        throw std::bad_alloc();
    *static_cast<std::uint64_t *>(block) = magic + alignment;
    live++;
    return static_cast<char *>(block) + header_bytes;
}

void give(void *place, std::size_t alignment)
{
    if (place == nullptr)
        return;
    char *block = static_cast<char *>(place) - header_bytes;
    CHECK(*reinterpret_cast<std::uint64_t *>(block) == magic + alignment);
    live--;
    std::free(block);
}

} // namespace

#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsized-deallocation" // that is the point
#endif

void *operator new(std::size_t bytes)
{
    return take(bytes, sizeof(void *));
}

void operator delete(void *place) noexcept
{
    give(place, sizeof(void *));
}

void *operator new(std::size_t bytes, std::align_val_t alignment)
{
    return take(bytes, static_cast<std::size_t>(alignment));
}

void operator delete(void *place, std::align_val_t alignment) noexcept
{
    give(place, static_cast<std::size_t>(alignment));
}

namespace
{

using Take = void *(*)(std::size_t);
using Give = void (*)(void *, std::size_t);

const Take takes[] = {
    [](std::size_t n) { return ::operator new(n); },
    [](std::size_t n) { return ::operator new[](n); },
    [](std::size_t n) { return ::operator new(n, std::nothrow); },
    [](std::size_t n) { return ::operator new[](n, std::nothrow); },
};
const Give gives[] = {
    [](void *p, std::size_t) { ::operator delete(p); },
    [](void *p, std::size_t n) { ::operator delete(p, n); },
    [](void *p, std::size_t) { ::operator delete(p, std::nothrow); },
    [](void *p, std::size_t) { ::operator delete[](p); },
    [](void *p, std::size_t n) { ::operator delete[](p, n); },
    [](void *p, std::size_t) { ::operator delete[](p, std::nothrow); },
};
const Take wide_takes[] = {
    [](std::size_t n) { return ::operator new(n, wide_tag); },
    [](std::size_t n) { return ::operator new[](n, wide_tag); },
    [](std::size_t n) { return ::operator new(n, wide_tag, std::nothrow); },
    [](std::size_t n) { return ::operator new[](n, wide_tag, std::nothrow); },
};
const Give wide_gives[] = {
    [](void *p, std::size_t) { ::operator delete(p, wide_tag); },
    [](void *p, std::size_t n) { ::operator delete(p, n, wide_tag); },
    [](void *p, std::size_t) { ::operator delete(p, wide_tag, std::nothrow); },
    [](void *p, std::size_t) { ::operator delete[](p, wide_tag); },
    [](void *p, std::size_t n) { ::operator delete[](p, n, wide_tag); },
    [](void *p, std::size_t) { ::operator delete[](p, wide_tag, std::nothrow); },
};

template <std::size_t T, std::size_t G> void each_pair(const Take (&in)[T], const Give (&out)[G])
{
    for (Take a : in)
        for (Give b : out)
            for (std::size_t bytes : {0, 1, 24, 1000, 70000, 300000}) {
                long before = live;
                void *block = a(bytes);
                CHECK(live == before + 1);
                std::memset(hidden(block), 1, bytes);
                b(block, bytes);
                CHECK(live == before);
            }
}

void every_form_calls_the_programs()
{
    each_pair(takes, gives);
    each_pair(wide_takes, wide_gives);
}

void what_containers_use_is_counted()
{
    long before = live;
    {
        std::vector<std::string> words;
        for (int i = 0; i < 1000; i++)
            words.emplace_back(100, 'x');
        CHECK(live > before + 1000);
        int *array = hidden(new int[10]);
        CHECK(live > before + 1001);
        delete[] array;
    }
    CHECK(live == before);
}

void what_the_programs_throws_is_null_where_nothing_may_be_thrown()
{
    is_refused = true;
    CHECK(takes[2](10) == nullptr && takes[3](10) == nullptr);
    CHECK(wide_takes[2](10) == nullptr && wide_takes[3](10) == nullptr);
    bool was_thrown = false;
    try {
        takes[1](10);
    } catch (const std::bad_alloc &) {
        was_thrown = true;
    }
    CHECK(was_thrown);
    is_refused = false;
}

struct Thrower {
    char some[40];
    Thrower()
    {
        throw 1;
    }
};

void a_constructor_that_throws_leaves_no_block()
{
    long before = live;
    for (int form = 0; form < 3; form++) {
        try {
            hidden(form == 0   ? new Thrower
                   : form == 1 ? new (std::nothrow) Thrower
                               : new Thrower[3]);
        } catch (int) {
        }
        CHECK(live == before);
    }
}

} // namespace

int main(int, char **arguments)
{
    every_form_calls_the_programs();
    what_containers_use_is_counted();
    what_the_programs_throws_is_null_where_nothing_may_be_thrown();
    a_constructor_that_throws_leaves_no_block();
    if (std::getenv("HAKMEM_HARDEN") ==
        nullptr) { // and once more with all that hardened mode knows
        setenv("HAKMEM_HARDEN", "all", 1);
        execv("/proc/self/exe", arguments);
        CHECK(!"it begins again");
    }
    return check_end();
}
