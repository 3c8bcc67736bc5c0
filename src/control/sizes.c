/* SPDX-License-Identifier: MIT */
#include "control/sizes.h"

#include "control/request.h"
#include "os/os.h"
#include "os/output.h"
#include "profile/size_log.h"

#define LINES_A_PIECE 16u

static int write_piece(const struct os_kept_fd *file, size_t *at, struct text *piece)
{
    int error = hak_os_request_write(file, *at, piece->start, piece->used);
    *at += piece->used;
    piece->used = 0;
    return error;
}

static int write_all(const struct os_kept_fd *file, const struct size_spread *spread)
{
    char written[(LINES_A_PIECE + 1) * HAK_SIZE_LINE_BYTES];
    struct text piece = {.start = written, .bytes = sizeof written};
    size_t at = sizeof(struct control_request);
    int error = 0;
    hak_size_head_write(&piece, spread->watched_ms, spread->samples);
    for (uint32_t i = 0; i < HAK_SIZE_CELLS && error == 0; i++) {
        if (spread->cells[i].block_ms != 0)
            hak_size_line_write(&piece, hak_size_cell_need(i), &spread->cells[i]);
        if (i % LINES_A_PIECE == LINES_A_PIECE - 1 || i == HAK_SIZE_CELLS - 1)
            error = write_piece(file, &at, &piece);
    }
    return error;
}

bool hak_control_sizes_list(const struct os_kept_fd *file, struct text *answer)
{
    static struct size_spread spread; /* of the thread that is inside */
    if (!hak_size_log_read(&spread, hak_os_clock_ns())) {
        hak_text_add(answer, "nothing was sampled: start the program with learn=sites or "
                             "heap_profile=on, or say `hakmem ctl PID profile on`");
        return false;
    }
    hak_size_spread_bound(&spread);
    int error = write_all(file, &spread);
    if (error != 0) {
        hak_os_unwritten_add(answer, "the sizes", NULL, hak_os_error_name(error), 0);
        return false;
    }
    hak_text_add_number(answer, spread.samples, 10);
    hak_text_add(answer, spread.samples == 1 ? " sample" : " samples");
    return true;
}
