/* SPDX-License-Identifier: MIT */
#include "view_sites.h"

#include "amount.h"

#include <inttypes.h>
#include <string.h>

/* The most columns of a function's name; its end distinguishes templates. */
#define FUNCTION_COLUMNS 40
#define FUNCTION_TAIL 14

static void add_switch(struct pane *pane, int pid)
{
    const struct sites *sites = &pane->view->sites;
    if (sites->state == SITES_WRONG)
        pane_add(pane, "  the heap profile cannot be read: %s", sites->wrong);
    else if (sites->state == SITES_ABSENT)
        pane_add(pane, "  the heap profile is off; to switch it on: hakmem ctl %d profile on", pid);
    else if (sites->state == SITES_STOPPED)
        pane_add(pane, "  the heap profile was stopped; to go on: hakmem ctl %d profile on", pid);
}

/* The middle of a long name is left out. */
static void write_function(char *to, size_t bytes, const char *function)
{
    size_t length = strlen(function);
    if (*function == '\0')
        snprintf(to, bytes, "(no stack)");
    else if (length <= FUNCTION_COLUMNS)
        snprintf(to, bytes, "%s", function);
    else
        snprintf(to, bytes, "%.*s..%s", FUNCTION_COLUMNS - FUNCTION_TAIL - 2, function,
                 function + length - FUNCTION_TAIL);
}

/* What holds nothing and does not change is of interest by what went through it. */
static bool is_shown(const struct view *view, const struct site_row *row)
{
    bool has_any = view->sites_order == SITES_BY_ALLOCATED || row->live_bytes != 0 ||
                   row->growth < 0 || row->growth > 0;
    return has_any && site_row_has(row, view->filter);
}

static void add_row(struct pane *pane, const struct site_row *row, bool has_growth)
{
    bool is_by_allocated = pane->view->sites_order == SITES_BY_ALLOCATED;
    struct amount blocks =
        is_by_allocated ? bytes_of(row->allocated_bytes) : count_of((double)row->live_blocks);
    char function[64], place[80] = "", growth[32] = "-";
    const struct view *view = pane->view;
    double size = row->growth < 0 ? -row->growth : row->growth;
    if (has_growth && size >= 1)
        snprintf(growth, sizeof growth, "%c%s", row->growth < 0 ? '-' : '+',
                 amount_of(size, 1024).text);
    if (*row->file != '\0' && row->line != 0)
        snprintf(place, sizeof place, "  %.40s:%" PRIu32, row->file, row->line);
    write_function(function, sizeof function, row->function);
    pane_add(pane, "%8s%c%9s %9s  %s%s%s %s", bytes_of(row->live_bytes).text,
             row->is_rough ? '~' : ' ', growth, blocks.text, function, place,
             pane_style(view, GREY), row->callers == NULL ? "" : row->callers);
}

void view_add_sites(struct pane *pane, int pid, int most)
{
    static const char *const orders[] = {"live", "growth", "allocated"};
    const struct view *view = pane->view;
    const struct sites *sites = &view->sites;
    char title[96];
    uint32_t shown = 0, passed = 0, count = 0;
    if (sites->state == SITES_UNREAD || most < 1)
        return;
    snprintf(title, sizeof title, "%8s %9s %9s  %s  by %s", "Live", "a second",
             view->sites_order == SITES_BY_ALLOCATED ? "allocated" : "blocks",
             "call site < its callers", orders[view->sites_order]);
    pane_add_title(pane, title);
    if (sites->state != SITES_ON) {
        add_switch(pane, pid);
        most--;
    }
    for (uint32_t i = 0; i < sites->row_count; i++)
        count += is_shown(view, &sites->rows[i]);
    uint32_t last = count > (uint32_t)most ? count - (uint32_t)most : 0;
    uint32_t first = (uint32_t)view->first < last ? (uint32_t)view->first : last;
    for (uint32_t i = 0; i < sites->row_count && shown < (uint32_t)most; i++) {
        if (!is_shown(view, &sites->rows[i]) || passed++ < first)
            continue;
        if (shown + 1 == (uint32_t)most && passed < count)
            pane_add(pane, "%8s %" PRIu32 " more call sites", "...", count - passed + 1);
        else
            add_row(pane, &sites->rows[i], sites->look_count > 1);
        shown++;
    }
    if (count == 0 && sites->state == SITES_ON)
        pane_add(pane, "  no call site%s",
                 *view->filter == '\0' ? " yet: nothing has been sampled" : " of such a name");
}
