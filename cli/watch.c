/* SPDX-License-Identifier: MIT */
#include "watch.h"

#include "serving.h"

#include <stddef.h>

/* It shows its numbers for so long, and is asked again in time. */
#define WATCH_WORDS "watch 30"
#define WATCH_AGAIN_MS 10000u

/* Asks a process that shows nothing; false: *why says why not. */
static bool attach(struct watch *watch, int pid, const char **why)
{
    struct ask ask;
    *why = serving_obstacle(pid);
    if (*why != NULL || !ask_and_wait(&ask, pid, WATCH_WORDS, ASK_WAIT_MS, why))
        return false;
    ask_end(&ask);
    *watch = (struct watch){.ask.fd = -1, .asked_ms = shared_clock_ms(), .is_on = true};
    return true;
}

bool watch_read(struct watch *watch, struct target *target, int pid, const char **why)
{
    if (target_read(target, pid, why))
        return true;
    return target->is_silent && attach(watch, pid, why) && target_read(target, pid, why);
}

void watch_go_on(struct watch *watch, int pid)
{
    const char *why;
    uint64_t now = shared_clock_ms();
    if (!watch->is_on || now - watch->asked_ms < WATCH_AGAIN_MS)
        return;
    ask_end(&watch->ask);
    watch->asked_ms = now;
    ask_begin(&watch->ask, pid, WATCH_WORDS, WATCH_AGAIN_MS, 0, &why);
}

void watch_end(struct watch *watch)
{
    ask_end(&watch->ask);
}
