// SPDX-License-Identifier: MIT
// profiled [FACTOR]: prints a heap profile in jemalloc's form, of its own stacks and mappings. The
// numbers are chosen; FACTOR multiplies those of shop::Shelf.
#include <cstdio>
#include <cstdlib>
#include <execinfo.h>

namespace
{

// A stack with so many blocks of one size, of which as many again are gone.
__attribute__((noinline)) void record(unsigned blocks, unsigned bytes)
{
    void *stack[64];
    int depth = backtrace(stack, 64);
    std::printf("@");
    for (int i = 1; i < depth; i++)
        std::printf(" %p", stack[i]);
    std::printf("\n  t*: %u: %u [%u: %u]\n  t1: 1: 1 [1: 1]\n", blocks, blocks * bytes, 2 * blocks,
                2 * blocks * bytes);
}

} // namespace

// So that a call is not the last thing that its caller does.
static inline void stay()
{
    asm volatile("");
}

namespace shop
{

template <class T> struct Shelf {
    __attribute__((always_inline)) void keep(unsigned blocks)
    {
        record(blocks, 1000 * sizeof(T));
        stay();
    }
    __attribute__((noinline)) void fill(unsigned blocks)
    {
        keep(blocks); // the call of keep
        stay();
    }
};

} // namespace shop

// Names as Rust makes them, of today and of before.
void new_rust() __asm__("_RNvNtCs1234_6market5stall4open");
void old_rust() __asm__("_ZN6market5close17h0123456789abcdefE");
__attribute__((noinline)) void new_rust()
{
    record(3, 4096);
    stay();
}
__attribute__((noinline)) void old_rust()
{
    record(2, 4096);
    stay();
}

int main(int, char **arguments)
{
    unsigned factor = arguments[1] != nullptr ? unsigned(std::atoi(arguments[1])) : 1;
    char line[1024];
    std::puts("heap_v2/524288\n  t*: 0: 0 [0: 0]");
    shop::Shelf<char>().fill(100 * factor);
    shop::Shelf<long>().fill(5 * factor);
    new_rust();
    old_rust();
    std::puts("\nMAPPED_LIBRARIES:");
    FILE *maps = std::fopen("/proc/self/maps", "r");
    while (std::fgets(line, sizeof line, maps) != nullptr)
        std::fputs(line, stdout);
    std::fclose(maps);
    return 0;
}
