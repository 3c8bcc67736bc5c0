/* SPDX-License-Identifier: MIT */
#include "learn/learned_user.h"

/* RULE_WATCHED: the user leaves the site to learning. */
static enum rule_state word_of(const struct learned_program *program, const struct site_line *site)
{
    for (uint32_t i = 0; i < program->site_count; i++)
        if (hak_site_line_is_said(&program->sites[i]) &&
            hak_site_line_is_same(&program->sites[i], site))
            return program->sites[i].state;
    return RULE_WATCHED;
}

/* What was learned gives way to what the user says; the last is worth least. */
static void make_room(struct learned_program *program)
{
    uint32_t i = program->site_count;
    while (i > 0 && hak_site_line_is_said(&program->sites[i - 1]))
        i--;
    if (i > 0 && program->site_count == HAK_LEARNED_SITES_MOST)
        hak_learned_drop_site(program, i - 1);
}

void hak_learned_heed(struct learned_program *program, const struct learned_program *before,
                      const struct learned_program *now)
{
    for (uint32_t i = 0; i < now->site_count; i++) {
        const struct site_line *site = &now->sites[i];
        enum rule_state word = word_of(before, site);
        bool is_new = (hak_site_line_is_said(site) ? site->state : RULE_WATCHED) != word;
        if (!is_new || word_of(program, site) != word)
            continue;
        if (!hak_learned_put_site(program, site)) {
            make_room(program);
            hak_learned_put_site(program, site);
        }
    }
}
