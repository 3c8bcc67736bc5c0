// SPDX-License-Identifier: MIT
// passer: says "ready", then takes a block and frees it, again and again until it is killed. Never
// are there two.
#include <cstdio>
#include <cstdlib>

__attribute__((noinline)) static void pass()
{
    void *volatile block = std::malloc(5000);
    std::free(block);
    asm volatile("");
}

int main()
{
    std::puts("ready");
    std::fflush(stdout);
    for (;;)
        pass();
}
