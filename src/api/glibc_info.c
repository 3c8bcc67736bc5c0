/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "hakmem/hakmem.h"
#include "stats/emit.h"
#include "stats/glibc_view.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* mallinfo(3), mallinfo2(3): not the C library's own declarations, since not every one has them. */
struct info2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct info {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct info2 hak_mallinfo2(void);
struct info hak_mallinfo(void);

static void view_snapshot(const struct snapshot *snapshot, void *view)
{
    *(struct glibc_view *)view = hak_glibc_view(snapshot);
}

struct info2 hak_mallinfo2(void)
{
    struct glibc_view view;
    hak_snapshot_show(view_snapshot, &view);
    return (struct info2){
        .arena = view.arena_bytes,
        .ordblks = view.rest_count,
        .smblks = view.fast_count,
        .hblks = view.mapped_count,
        .hblkhd = view.mapped_bytes,
        .fsmblks = view.fast_bytes,
        .uordblks = view.in_use_bytes,
        .fordblks = view.fast_bytes + view.rest_bytes,
        .keepcost = view.releasable_bytes,
    };
}

/* mallinfo(3): "information may be wrong" beyond 2 GiB; here it stays at INT_MAX rather than become
 * a small or negative number. */
static int narrow(size_t value)
{
    return (int)hak_least(value, INT_MAX);
}

struct info hak_mallinfo(void)
{
    struct info2 wide = hak_mallinfo2();
    return (struct info){
        .arena = narrow(wide.arena),
        .ordblks = narrow(wide.ordblks),
        .smblks = narrow(wide.smblks),
        .hblks = narrow(wide.hblks),
        .hblkhd = narrow(wide.hblkhd),
        .fsmblks = narrow(wide.fsmblks),
        .uordblks = narrow(wide.uordblks),
        .fordblks = narrow(wide.fordblks),
        .keepcost = narrow(wide.keepcost),
    };
}

/* malloc_stats(3): on standard error; here the summary of the statistics. The program asks for it
 * now, so it is what the program has for its standard error now, as with glibc. */
void hak_malloc_stats(void)
{
    hakmem_stats_print(2, "summary");
}

static void write_to_stream(void *stream, const char *piece, size_t bytes)
{
    fwrite(piece, 1, bytes, stream);
}

static void write_snapshot(const struct snapshot *snapshot, void *stream)
{
    hak_emit_xml(snapshot, write_to_stream, stream);
}

/* malloc_info(3): options must be 0; EINVAL is returned, as glibc does. The stream may allocate,
 * which is after the snapshot. */
int hak_malloc_info(int options, FILE *stream)
{
    if (options != 0)
        return EINVAL;
    hak_snapshot_show(write_snapshot, stream);
    return 0;
}

HAK_LIBC_ALIAS(mallinfo, hak_mallinfo)
HAK_LIBC_ALIAS(mallinfo2, hak_mallinfo2)
HAK_LIBC_ALIAS(__libc_mallinfo, hak_mallinfo)
HAK_LIBC_ALIAS(malloc_stats, hak_malloc_stats)
HAK_LIBC_ALIAS(malloc_info, hak_malloc_info)
