/* SPDX-License-Identifier: MIT */
#include "learn/checksum.h"

/* What four bits that are shifted out add to the rest. */
static const uint32_t table[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

uint32_t hak_checksum(const void *bytes, size_t count)
{
    const unsigned char *next = bytes;
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum ^= next[i];
        sum = sum >> 4 ^ table[sum & 15];
        sum = sum >> 4 ^ table[sum & 15];
    }
    return ~sum;
}
