/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ask.h"
#include "base/size_class_table.h"
#include "class_choice.h"
#include "command.h"
#include "learned_source.h"
#include "serving.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint32_t today[] = {8,
#define X(class_index, below, block_bytes) (block_bytes),
                                 HAK_SIZE_CLASSES(X)
#undef X
};
#define TODAY_COUNT ((uint32_t)(sizeof today / sizeof *today))

struct wish {
    const char *source;
    const char *program;
    uint32_t class_count;
    bool is_json;
};

/* The load of a current class, in block- and byte-milliseconds. */
struct served {
    uint64_t blocks, requested, cost;
};

struct account {
    char program[HAK_LEARNED_NAME_BYTES];
    struct size_spread spread;
    uint64_t samples;
    struct served classes[TODAY_COUNT];
    uint64_t cost;
    struct class_choice choice;
    uint32_t table[CHOICE_CLASSES_MOST];
    uint32_t table_count;
};

/* What has no sizes cannot be meant, unless it is named or no program has any. */
static void keep_sized(struct learned *learned)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < learned->count; i++)
        if (learned->programs[i].sizes.count != 0)
            learned->programs[kept++] = learned->programs[i];
    if (kept != 0)
        learned->count = kept;
}

static int read_file(struct account *account, const struct wish *wish)
{
    static struct learned learned;
    const char *wrong = learned_source_read(&learned, wish->source);
    if (wrong != NULL)
        return complain(EXIT_FAILED, "classes: %s %s", wish->source, wrong);
    if (wish->program == NULL)
        keep_sized(&learned);
    const struct learned_program *program =
        learned_source_program(&learned, "classes", wish->source, wish->program);
    if (program == NULL)
        return EXIT_FAILED;
    if (program->sizes.count == 0)
        return complain(EXIT_FAILED,
                        "classes: %s has no sizes of %s: they are sampled with learn=sites, as in "
                        "mode learning, or heap_profile=on",
                        wish->source, program->name);
    snprintf(account->program, sizeof account->program, "%s", program->name);
    hak_size_spread_add(&account->spread, &program->sizes);
    return EXIT_DONE;
}

static int read_process(struct account *account, int pid)
{
    static char text[(HAK_SIZE_CELLS + 1) * HAK_SIZE_LINE_BYTES];
    struct ask ask;
    const char *answer, *obstacle = serving_obstacle(pid);
    if (obstacle != NULL)
        return complain(EXIT_FAILED, "classes: %s", obstacle);
    if (!ask_and_wait(&ask, pid, "sizes", ASK_WAIT_MS, &answer))
        return complain(EXIT_FAILED, "classes: %s", answer);
    ssize_t bytes = pread(ask.fd, text, sizeof text, sizeof(struct control_request));
    ask_end(&ask);
    if (bytes <= 0 || hak_size_spread_read(&account->spread, text, (size_t)bytes) == 0)
        return complain(EXIT_FAILED,
                        "classes: process %d holds no block of a size class that was "
                        "sampled",
                        pid);
    snprintf(account->program, sizeof account->program, "process %d", pid);
    return EXIT_DONE;
}

static void add_up(struct account *account, uint32_t class_count)
{
    struct class_choice *choice = &account->choice;
    account->samples = account->spread.samples;
    class_choice_find(choice, &account->spread, CHOICE_CLASSES_MOST);
    for (uint32_t i = 0, at = 0; i < choice->size_count; i++) {
        while (today[at] < choice->needs[i])
            at++;
        struct served *class = &account->classes[at];
        uint64_t cost = choice->blocks[i] * hak_size_share_bytes(today[at]);
        class->blocks += choice->blocks[i];
        class->requested += choice->blocks[i] * choice->needs[i] - choice->slacks[i];
        class->cost += cost;
        account->cost += cost;
    }
    account->table_count = class_choice_table(choice, class_count, account->table);
}

static uint64_t mean(const struct account *account, uint64_t byte_ms)
{
    return class_choice_mean(&account->choice, byte_ms);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

/* What the best table takes less; negative: today's fits better than so few classes can. */
static int64_t saved(const struct account *account, uint32_t class_count)
{
    return (int64_t)mean(account, account->cost) -
           (int64_t)mean(account, account->choice.costs[class_count]);
}

/* Numbers of classes that are compared. */
static const uint32_t counts[] = {8, 16, 24, 32, 48, 64, TODAY_COUNT, 96, CHOICE_CLASSES_MOST};
#define COUNTS (sizeof counts / sizeof *counts)

static void put_today(const struct account *account)
{
    printf("%8s %14s %14s %14s %7s\n", "CLASS", "LIVE BLOCKS", "REQUESTED", "WASTE", "SHARE");
    for (uint32_t i = 0; i < TODAY_COUNT; i++) {
        const struct served *class = &account->classes[i];
        if (class->blocks == 0)
            continue;
        uint64_t waste = mean(account, class->cost) - mean(account, class->requested);
        printf("%8" PRIu32 " %14.1f %14" PRIu64 " %14" PRIu64 " %5.1f %%\n", today[i],
               (double)class->blocks / (double)account->choice.watched_ms,
               mean(account, class->requested), waste, share(waste, mean(account, class->cost)));
    }
}

static void put_table(const struct account *account)
{
    for (uint32_t i = 0; i < account->table_count; i++)
        printf("%s%" PRIu32, i % 12 == 0 ? "\n  " : " ", account->table[i]);
    putchar('\n');
}

static void put(const struct account *account, const struct wish *wish)
{
    char held[32], wasted[32];
    const struct class_choice *choice = &account->choice;
    uint64_t cost = mean(account, account->cost), requested = mean(account, choice->requested);
    printf("%s: on average %s live in blocks of size classes (%" PRIu64 " samples), of which %s "
           "is waste\n\n",
           account->program, size_text(held, cost), account->samples,
           size_text(wasted, cost - requested));
    put_today(account);
    printf("%8s %14s %14" PRIu64 " %14" PRIu64 " %5.1f %%\n\n", "all", "", requested,
           cost - requested, share(cost - requested, cost));
    printf("%8s %14s %14s\n", "CLASSES", "LEAST WASTE", "SAVED");
    for (size_t i = 0; i < COUNTS; i++)
        printf("%8" PRIu32 " %14" PRIu64 " %14" PRId64 "%s\n", counts[i],
               mean(account, choice->costs[counts[i]]) - requested, saved(account, counts[i]),
               counts[i] == TODAY_COUNT ? "  as many as today" : "");
    printf("\nthe best table of at most %" PRIu32 " classes saves %" PRId64 " bytes (%.1f %%):",
           wish->class_count, saved(account, wish->class_count),
           100.0 * (double)saved(account, wish->class_count) / (double)(cost == 0 ? 1 : cost));
    put_table(account);
}

static void put_today_json(const struct account *account)
{
    const char *before = "";
    for (uint32_t i = 0; i < TODAY_COUNT; i++) {
        const struct served *class = &account->classes[i];
        if (class->blocks == 0)
            continue;
        printf("%s{\"block_bytes\": %" PRIu32
               ", \"live_blocks\": %.3f, \"requested_bytes\": %" PRIu64
               ", \"waste_bytes\": %" PRIu64 "}",
               before, today[i], (double)class->blocks / (double)account->choice.watched_ms,
               mean(account, class->requested),
               mean(account, class->cost) - mean(account, class->requested));
        before = ",\n  ";
    }
}

static void put_json(const struct account *account, const struct wish *wish)
{
    const struct class_choice *choice = &account->choice;
    uint64_t cost = mean(account, account->cost), requested = mean(account, choice->requested);
    fputs("{\"program\": ", stdout);
    put_json_string(account->program);
    printf(", \"samples\": %" PRIu64 ",\n \"today\": {\"classes\": %" PRIu32
           ", \"requested_bytes\": %" PRIu64 ", \"waste_bytes\": %" PRIu64 ", \"by_class\": [\n  ",
           account->samples, TODAY_COUNT, requested, cost - requested);
    put_today_json(account);
    fputs("]},\n \"by_count\": [", stdout);
    for (size_t i = 0; i < COUNTS; i++)
        printf("%s{\"classes\": %" PRIu32 ", \"waste_bytes\": %" PRIu64
               ", \"saved_bytes\": %" PRId64 "}",
               i == 0 ? "" : ", ", counts[i], mean(account, choice->costs[counts[i]]) - requested,
               saved(account, counts[i]));
    printf("],\n \"best\": {\"waste_bytes\": %" PRIu64 ", \"saved_bytes\": %" PRId64
           ", \"classes\": [",
           mean(account, choice->costs[wish->class_count]) - requested,
           saved(account, wish->class_count));
    for (uint32_t i = 0; i < account->table_count; i++)
        printf("%s%" PRIu32, i == 0 ? "" : ", ", account->table[i]);
    puts("]}}");
}

/* EXIT_DONE: it was understood. */
static int understand(struct wish *wish, char **words)
{
    const char *count = NULL;
    const struct word_option options[] = {{"--json", &wish->is_json, NULL},
                                          {"--program", NULL, &wish->program},
                                          {"--count", NULL, &count},
                                          {0}};
    int status = words_read("classes", words, options);
    if (status != EXIT_DONE)
        return status;
    int number = number_from(count, 1, (int)CHOICE_CLASSES_MOST);
    if (count != NULL && number < 0)
        return complain(EXIT_USAGE, "classes: --count takes 1 to %u", CHOICE_CLASSES_MOST);
    wish->class_count = count == NULL ? TODAY_COUNT : (uint32_t)number;
    if (words[0] == NULL)
        return complain_usage("classes");
    if (words[1] != NULL)
        return complain(EXIT_USAGE, "classes: one process or file at a time, not also '%.60s'",
                        words[1]);
    wish->source = words[0];
    return EXIT_DONE;
}

int command_classes(int argument_count, char **arguments)
{
    (void)argument_count;
    static struct account account;
    struct wish wish = {0};
    int status = understand(&wish, arguments + 1);
    if (status != EXIT_DONE)
        return status;
    int pid = process_number_from(wish.source);
    status = pid != 0 ? read_process(&account, pid) : read_file(&account, &wish);
    if (status != EXIT_DONE)
        return status;
    add_up(&account, wish.class_count);
    if (wish.is_json)
        put_json(&account, &wish);
    else
        put(&account, &wish);
    return EXIT_DONE;
}
