/* SPDX-License-Identifier: MIT */
#include "heap/cache.h"

/* What threads without a cache are led to, and what every thread is led by. */

const struct bins hak_bins_closed;

/* Both places where an id may be lead to nothing. */
#define CLOSED_AREA {.cpu_id = HAK_ID_CLOSED, .mm_cid = HAK_ID_CLOSED}
struct rseq_area hak_here_unasked = CLOSED_AREA;
struct rseq_area hak_here_never = CLOSED_AREA;
HAK_TLS struct rseq_area *hak_here = &hak_here_unasked;
