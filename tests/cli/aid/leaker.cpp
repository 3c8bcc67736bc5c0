// SPDX-License-Identifier: MIT
// leaker SEED: leaks by five functions, at random, until it is killed or a limit refuses, and frees
// some of what it takes; its standard output is a file of five numbers, the live bytes of each.
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

namespace yard
{

volatile std::uint64_t *live;
void *volatile last;

template <int site> __attribute__((noinline)) void leak(std::size_t bytes, bool is_kept)
{
    void *block = std::malloc(bytes);
    last = block;
    if (block == nullptr)
        for (;;)
            pause();
    for (std::size_t at = 0; at < bytes; at += 4096) /* so that it is resident */
        static_cast<volatile char *>(block)[at] = 1;
    if (is_kept)
        live[site] += bytes;
    else
        std::free(block);
}

} // namespace yard

int main(int, char **arguments)
{
    std::uint64_t state = std::strtoull(arguments[1], nullptr, 10) * 2654435761u + 1;
    void *file = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 1, 0);
    if (file == MAP_FAILED)
        return 1;
    yard::live = static_cast<std::uint64_t *>(file);
    for (;;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned dice = state >> 40 & 255;
        bool is_kept = (state >> 50 & 3) != 0;
        if (dice < 100)
            yard::leak<0>(100 + (state >> 33 & 511), is_kept);
        else if (dice < 160)
            yard::leak<1>(16 + (state >> 33 & 63), is_kept);
        else if (dice < 230)
            yard::leak<2>(1000 + (state >> 33 & 1023), is_kept);
        else if (dice < 254)
            yard::leak<3>(5000 + (state >> 33 & 4095), is_kept);
        else
            yard::leak<4>(140000 + (state >> 33 & 65535), is_kept);
    }
}
