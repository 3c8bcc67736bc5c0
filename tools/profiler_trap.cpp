// SPDX-License-Identifier: MIT
// trap: what profilers that sample may get wrong. Three sites keep about 64 MB each, in blocks of
// 100 bytes, 4,000 bytes and 100 KB; a fourth one allocates and frees in pairs, a hundred times for
// each block of 4,000 bytes that is kept. Prints what is true: "NAME LIVE_BYTES ALLOCATED_BYTES" a
// line. With tcmalloc below, its samples of what lives go to the file that is named first.
#include "profiler_samples.hpp"

#include <cstdio>
#include <cstdlib>

namespace
{

constexpr long kept_medium = 16000, pairs = 100, smalls = 40;
void *volatile kept[kept_medium * (smalls + 1) + 1000];
long count;

} // namespace

extern "C" {

__attribute__((noinline)) void keep_small()
{
    kept[count++] = std::malloc(100);
    asm volatile("");
}

__attribute__((noinline)) void keep_medium()
{
    kept[count++] = std::malloc(4000);
    asm volatile("");
}

__attribute__((noinline)) void keep_large()
{
    kept[count++] = std::malloc(100000);
    asm volatile("");
}

__attribute__((noinline)) void pass()
{
    void *volatile block = std::malloc(4000);
    std::free(block);
    asm volatile("");
}
}

int main(int argument_count, char **arguments)
{
    long larges = 0;
    for (long i = 0; i < kept_medium; i++) {
        for (long j = 0; j < smalls; j++)
            keep_small();
        keep_medium();
        for (; larges < i / 25; larges++)
            keep_large();
        for (long j = 0; j < pairs; j++)
            pass();
    }
    if (argument_count > 1)
        write_samples_of_tcmalloc(arguments[1]);
    std::printf("keep_small %ld %ld\n", kept_medium * smalls * 100, kept_medium * smalls * 100);
    std::printf("keep_medium %ld %ld\n", kept_medium * 4000, kept_medium * 4000);
    std::printf("keep_large %ld %ld\n", larges * 100000, larges * 100000);
    std::printf("pass 0 %ld\n", kept_medium * pairs * 4000);
    return 0;
}
