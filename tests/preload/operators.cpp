// SPDX-License-Identifier: MIT
// tests/preload/operators.cpp - every form of operator new with every form of operator delete that
// may free its block, and what the standard says of failure: new_handler, bad_alloc, NULL. If this
// fails, some C++ program gets a block of another allocator, or dies where it should be told.
//
// Source: C++20 [new.delete.single], [new.delete.array], [alloc.errors], [new.handler].
#include "new_handler.hpp"
#include "program.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <malloc.h>
#include <new>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

const char *const names[] = {
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};

void every_operator_is_hakmems()
{
    Dl_info served, library;
    CHECK(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &served) != 0);
    CHECK(std::strstr(served.dli_fname, "libc.so") == nullptr);
    for (const char *name : names) {
        void *symbol = dlsym(RTLD_DEFAULT, name);
        CHECK(symbol != nullptr && dladdr(symbol, &library) != 0);
        CHECK(library.dli_fbase == served.dli_fbase);
    }
}

constexpr std::size_t wide = 256;
constexpr std::align_val_t wide_tag{wide};

struct New {
    void *(*take)(std::size_t);
    bool is_aligned, is_array, is_nothrow;
};

const New news[] = {
    {[](std::size_t n) { return ::operator new(n); }, false, false, false},
    {[](std::size_t n) { return ::operator new[](n); }, false, true, false},
    {[](std::size_t n) { return ::operator new(n, std::nothrow); }, false, false, true},
    {[](std::size_t n) { return ::operator new[](n, std::nothrow); }, false, true, true},
    {[](std::size_t n) { return ::operator new(n, wide_tag); }, true, false, false},
    {[](std::size_t n) { return ::operator new[](n, wide_tag); }, true, true, false},
    {[](std::size_t n) { return ::operator new(n, wide_tag, std::nothrow); }, true, false, true},
    {[](std::size_t n) { return ::operator new[](n, wide_tag, std::nothrow); }, true, true, true},
};

struct Delete {
    void (*give)(void *, std::size_t);
    bool is_aligned, is_array;
};

const Delete deletes[] = {
    {[](void *p, std::size_t) { ::operator delete(p); }, false, false},
    {[](void *p, std::size_t n) { ::operator delete(p, n); }, false, false},
    {[](void *p, std::size_t) { ::operator delete(p, std::nothrow); }, false, false},
    {[](void *p, std::size_t) { ::operator delete[](p); }, false, true},
    {[](void *p, std::size_t n) { ::operator delete[](p, n); }, false, true},
    {[](void *p, std::size_t) { ::operator delete[](p, std::nothrow); }, false, true},
    {[](void *p, std::size_t) { ::operator delete(p, wide_tag); }, true, false},
    {[](void *p, std::size_t n) { ::operator delete(p, n, wide_tag); }, true, false},
    {[](void *p, std::size_t) { ::operator delete(p, wide_tag, std::nothrow); }, true, false},
    {[](void *p, std::size_t) { ::operator delete[](p, wide_tag); }, true, true},
    {[](void *p, std::size_t n) { ::operator delete[](p, n, wide_tag); }, true, true},
    {[](void *p, std::size_t) { ::operator delete[](p, wide_tag, std::nothrow); }, true, true},
};

const std::size_t sizes[] = {0, 1, 8, 9, 24, 1000, 5000, 70000, 131072, 200000, 3000000};

// [basic.stc.dynamic.allocation]: also for 0 bytes a pointer that no other live block has.
void check_block(const New &form, void *block, void *other, std::size_t bytes)
{
    std::size_t alignment = form.is_aligned ? wide : bytes > 8 ? 16 : 8;
    CHECK(block != nullptr && block != other);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    CHECK(malloc_usable_size(block) >= bytes);
    std::memset(block, 1, bytes);
}

void every_new_goes_with_every_delete_of_its_kind()
{
    struct mallinfo2 before = mallinfo2();
    for (const New &form : news)
        for (const Delete &end : deletes) {
            if (form.is_aligned != end.is_aligned || form.is_array != end.is_array)
                continue;
            for (std::size_t bytes : sizes) {
                void *block = form.take(bytes), *other = form.take(bytes);
                check_block(form, block, other, bytes);
                check_block(form, other, block, bytes);
                errno = 77;
                end.give(block, bytes);
                end.give(other, bytes);
                CHECK(errno == 77);
            }
            end.give(nullptr, 0);
        }
    struct mallinfo2 after = mallinfo2();
    CHECK(after.uordblks == before.uordblks && after.hblkhd == before.hblkhd);
}

enum class Outcome { block, null, bad_alloc, other };

struct Refused {
};

Outcome outcome_of(const New &form, std::size_t bytes)
{
    try {
        return hidden(form.take(bytes)) == nullptr ? Outcome::null : Outcome::block;
    } catch (const std::bad_alloc &) {
        return Outcome::bad_alloc;
    } catch (const Refused &) {
        return Outcome::other;
    }
}

Outcome refusal_of(const New &form)
{
    return form.is_nothrow ? Outcome::null : Outcome::bad_alloc;
}

const std::size_t absurd[] = {PTRDIFF_MAX / 2, PTRDIFF_MAX,   std::size_t{PTRDIFF_MAX} + 1,
                              SIZE_MAX - 4096, SIZE_MAX - 15, SIZE_MAX};

void what_cannot_be_had_is_bad_alloc_or_null()
{
    for (const New &form : news)
        for (std::size_t bytes : absurd)
            CHECK(outcome_of(form, hidden(bytes)) == refusal_of(form));
}

void throw_refused()
{
    throw Refused();
}

struct DerivedFailure : std::bad_alloc {
};

void throw_derived()
{
    throw DerivedFailure();
}

// [new.delete.single]: the loop runs until there is no handler, or it throws; a nothrow form
// returns NULL whatever was thrown.
void every_form_calls_the_new_handler()
{
    for (const New &form : news) {
        handler_calls = 0;
        std::set_new_handler(give_up_at_the_third_call);
        CHECK(outcome_of(form, hidden(absurd[0])) == refusal_of(form));
        CHECK(handler_calls == 3 && std::get_new_handler() == nullptr);
        std::set_new_handler(throw_derived);
        CHECK(outcome_of(form, hidden(absurd[0])) == refusal_of(form));
        std::set_new_handler(throw_refused);
        CHECK(outcome_of(form, hidden(absurd[0])) ==
              (form.is_nothrow ? Outcome::null : Outcome::other));
        CHECK(outcome_of(form, 100) == Outcome::block);
        std::set_new_handler(nullptr);
    }
}

constexpr std::size_t reserve_bytes = std::size_t{400} << 20;
void *reserve;

void spend_the_reserve()
{
    handler_calls++;
    std::free(reserve);
    reserve = nullptr;
    std::set_new_handler(nullptr);
}

// In a process of its own, with 700 MiB of address space.
void a_handler_that_frees_memory_lets_new_succeed()
{
    for (const New &form : news) {
        handler_calls = 0;
        reserve = std::malloc(reserve_bytes);
        CHECK(reserve != nullptr);
        std::set_new_handler(spend_the_reserve);
        void *block = hidden(form.take(reserve_bytes));
        CHECK(block != nullptr && handler_calls == 1);
        std::free(block);
    }
    std::_Exit(0);
}

void memory_that_a_handler_frees_is_used(const char *program)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct rlimit limit = {std::size_t{700} << 20, std::size_t{700} << 20};
        if (setrlimit(RLIMIT_AS, &limit) == 0)
            execl("/proc/self/exe", program, "limited", static_cast<char *>(nullptr));
        _exit(3);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Undefined by the standard; GCC's library throws bad_alloc, or returns NULL, without the handler.
void alignments_that_are_no_power_of_two_are_refused()
{
    for (std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{100},
                                  SIZE_MAX, SIZE_MAX / 2}) {
        auto tag = static_cast<std::align_val_t>(hidden(alignment));
        handler_calls = 0;
        std::set_new_handler(give_up_at_the_third_call);
        for (bool is_array : {false, true}) {
            CHECK(throws_bad_alloc(
                [=] { hidden(is_array ? ::operator new[](100, tag) : ::operator new(100, tag)); }));
        }
        CHECK(hidden(::operator new(100, tag, std::nothrow)) == nullptr);
        CHECK(hidden(::operator new[](100, tag, std::nothrow)) == nullptr);
        CHECK(handler_calls == 0);
        std::set_new_handler(nullptr);
    }
    volatile std::size_t huge = std::size_t{1} << 62;
    CHECK(hidden(::operator new(100, static_cast<std::align_val_t>(huge), std::nothrow)) ==
          nullptr);
}

// [expr.new]: the compiler finds the overflow, and its library throws. Clang asks the array form
// for all bytes there are instead, which throws a base of that.
#if defined(__clang__)
using BadLength = std::bad_alloc;
#else
using BadLength = std::bad_array_new_length;
#endif
void an_array_that_overflows_is_bad_array_new_length()
{
    struct Pair {
        std::size_t a, b;
    };
    bool was_thrown = false;
    try {
        hidden(new Pair[hidden(SIZE_MAX / 8)]);
    } catch (const BadLength &) {
        was_thrown = true;
    }
    CHECK(was_thrown);
}

template <std::size_t alignment> struct alignas(alignment) Thrower {
    char bytes[1000];
    Thrower()
    {
        hidden(&bytes[0]);
        throw Refused();
    }
};

template <class T> void fail_to_construct()
{
    for (int form = 0; form < 4; form++) {
        bool was_thrown = false;
        try {
            hidden(form == 0   ? new T
                   : form == 1 ? new (std::nothrow) T
                   : form == 2 ? new T[3]
                               : new (std::nothrow) T[3]);
        } catch (const Refused &) {
            was_thrown = true;
        }
        CHECK(was_thrown);
    }
}

// [expr.new]: the matching delete frees the block of an object whose constructor throws.
void a_constructor_that_throws_leaves_no_block()
{
    fail_to_construct<Thrower<16>>();
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 1000; i++) {
        fail_to_construct<Thrower<16>>();
        fail_to_construct<Thrower<512>>();
    }
    CHECK(mallinfo2().uordblks == before.uordblks);
}

} // namespace

int main(int argument_count, char **arguments)
{
    alarm(100);
    if (argument_count == 2 && std::strcmp(arguments[1], "limited") == 0)
        a_handler_that_frees_memory_lets_new_succeed();
    every_operator_is_hakmems();
    every_new_goes_with_every_delete_of_its_kind();
    what_cannot_be_had_is_bad_alloc_or_null();
    every_form_calls_the_new_handler();
    memory_that_a_handler_frees_is_used(arguments[0]);
    alignments_that_are_no_power_of_two_are_refused();
    an_array_that_overflows_is_bad_array_new_length();
    a_constructor_that_throws_leaves_no_block();
    return check_end();
}
