// SPDX-License-Identifier: MIT
// holder: holds 8 MB by yard::keep and passes 80 MB through yard::pass; then says "ready" and adds
// 1 MB by yard::leak for each line on its standard input.
#include <cstdio>
#include <cstdlib>

namespace yard
{

void *volatile kept[100000];
int count;

__attribute__((noinline)) void keep()
{
    kept[count++] = std::malloc(1000);
    asm volatile("");
}

__attribute__((noinline)) void leak()
{
    kept[count++] = std::malloc(10000);
    asm volatile("");
}

__attribute__((noinline)) void pass()
{
    void *volatile block = std::malloc(1000);
    std::free(block);
    asm volatile("");
}

} // namespace yard

int main()
{
    char line[64];
    for (int i = 0; i < 8000; i++) {
        yard::keep();
        for (int j = 0; j < 10; j++)
            yard::pass();
    }
    std::puts("ready");
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        for (int i = 0; i < 100; i++)
            yard::leak();
        std::puts("done");
        std::fflush(stdout);
    }
    return 0;
}
