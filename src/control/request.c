/* SPDX-License-Identifier: MIT */
#include "control/request.h"

#include "base/text.h"

#include <string.h>

/* A request with a later deadline is invalid. So is one whose deadline has passed: the unsigned
 * difference is larger still. */
#define DEADLINE_MOST_MS 86400000u

static bool is_same(uint64_t left, uint64_t right)
{
    return left == right || left == 0 || right == 0;
}

bool hak_request_is_due(const struct control_request *request, const struct request_finder *finder)
{
    return request->magic == HAK_REQUEST_MAGIC && request->state == REQUEST_WAITS &&
           request->pid == finder->pid && is_same(request->pid_space, finder->pid_space) &&
           is_same(request->start_ticks, finder->start_ticks) &&
           request->deadline_ms - finder->now_ms <= DEADLINE_MOST_MS;
}

/* What follows `word` and a space; NULL: the text does not begin so. */
static const char *rest_after(const char *text, const char *word)
{
    size_t bytes = strlen(word);
    return strncmp(text, word, bytes) == 0 && text[bytes] == ' ' ? text + bytes + 1 : NULL;
}

static void read_set(const char *text, struct request_wish *wish)
{
    size_t name_bytes = strcspn(text, "=");
    const char *value = text + name_bytes + 1;
    if (text[name_bytes] != '=' || name_bytes == 0 || name_bytes >= sizeof wish->name ||
        strlen(value) >= sizeof wish->value)
        return;
    memcpy(wish->name, text, name_bytes);
    memcpy(wish->value, value, strlen(value));
    wish->kind = REQUEST_SET;
}

static void read_watch(const char *text, struct request_wish *wish)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 4 || text[digits] != '\0')
        return;
    uint32_t seconds = (uint32_t)hak_text_number(text, 10);
    if (seconds > HAK_REQUEST_WATCH_SECONDS_MOST)
        return;
    wish->seconds = seconds;
    wish->kind = REQUEST_WATCH;
}

void hak_request_read(const struct control_request *request, struct request_wish *wish)
{
    static const struct {
        const char *words;
        enum request_kind kind;
    } fixed[] = {
        {"trim", REQUEST_TRIM},
        {"dump", REQUEST_DUMP},
        {"profile on", REQUEST_PROFILE_ON},
        {"profile off", REQUEST_PROFILE_OFF},
        {"profile dump", REQUEST_PROFILE_DUMP},
        {"rules", REQUEST_RULES},
        {"sizes", REQUEST_SIZES},
    };
    const char *words = request->words;
    const char *rest;
    memset(wish, 0, sizeof *wish);
    if (memchr(words, '\0', sizeof request->words) == NULL)
        return;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (strcmp(words, fixed[i].words) == 0)
            wish->kind = fixed[i].kind;
    if ((rest = rest_after(words, "set")) != NULL)
        read_set(rest, wish);
    if (wish->kind == REQUEST_PROFILE_DUMP)
        memcpy(wish->value, "pprof", sizeof "pprof");
    if ((rest = rest_after(words, "profile dump")) != NULL) {
        memcpy(wish->value, rest, strlen(rest));
        wish->kind = REQUEST_PROFILE_DUMP;
    }
    if ((rest = rest_after(words, "rule")) != NULL) {
        memcpy(wish->value, rest, strlen(rest));
        wish->kind = REQUEST_RULE;
    }
    if ((rest = rest_after(words, "watch")) != NULL)
        read_watch(rest, wish);
}
