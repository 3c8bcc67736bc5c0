/* SPDX-License-Identifier: MIT */
#include "learn/learned_halve.h"

#include "base/bits.h"

static void halve_matches(struct learned_program *program)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < program->match_count; i++) {
        struct match_line line = program->matches[i];
        if (hak_match_line_halve(&line))
            program->matches[kept++] = line;
    }
    program->match_count = kept;
}

static void halve_sites(struct learned_program *program)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < program->site_count; i++) {
        struct site_line line = program->sites[i];
        line.judged /= 2;
        line.survivors = (uint32_t)hak_least(line.survivors / 2, line.judged);
        if (line.judged != 0 || hak_site_line_is_said(&line))
            program->sites[kept++] = line;
    }
    program->site_count = kept;
}

void hak_learned_halve(struct learned_program *program)
{
    program->runs = (program->runs + 1) / 2; /* each run sees a first second: it is never stale */
    for (int i = 0; i < LEARNED_LOG_COUNT; i++) {
        struct keep_evidence *log = &program->logs[i];
        log->episodes /= 2;
        if (log->episodes == 0)
            log->choice = 0;
        for (uint32_t cost = 0; cost < HAK_KEEP_CHOICES; cost++)
            log->costs[cost] = log->episodes == 0 ? 0 : log->costs[cost] / 2;
    }
    halve_matches(program);
    halve_sites(program);
    hak_size_lines_halve(&program->sizes);
}
