/* SPDX-License-Identifier: MIT */
#include "profile/board.h"

uint64_t hak_board_layout(void)
{
    return hak_shm_layout() ^ (sizeof(struct profile_board) << 32 |
                               sizeof(struct board_site) << 16 | HAK_BOARD_VERSION);
}
