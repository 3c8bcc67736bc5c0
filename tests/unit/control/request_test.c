/* SPDX-License-Identifier: MIT */
/* tests/unit/control/request_test.c - a request is for one process and a time; its words are read,
 * whatever they are. */
#include "control/request.h"

#include "check.h"

static struct control_request request_for(uint64_t pid, const char *words)
{
    struct control_request request = {.magic = HAK_REQUEST_MAGIC,
                                      .pid = pid,
                                      .pid_space = 11,
                                      .start_ticks = 22,
                                      .deadline_ms = 5000};
    snprintf(request.words, sizeof request.words, "%s", words);
    return request;
}

static const struct request_finder finder = {
    .pid = 7, .pid_space = 11, .start_ticks = 22, .now_ms = 4000};

static struct request_wish read_words(const char *words)
{
    struct request_wish wish;
    struct control_request request = request_for(7, words);
    hak_request_read(&request, &wish);
    return wish;
}

TEST(a_request_is_due_until_its_deadline)
{
    struct control_request request = request_for(7, "trim");
    struct request_finder late = finder;
    CHECK(hak_request_is_due(&request, &finder));
    late.now_ms = 5000;
    CHECK(hak_request_is_due(&request, &late));
    late.now_ms = 5001;
    CHECK(!hak_request_is_due(&request, &late));
    request.deadline_ms = UINT64_MAX;
    CHECK(!hak_request_is_due(&request, &finder));
}

TEST(a_request_for_another_process_is_not_due)
{
    struct control_request request = request_for(8, "trim");
    CHECK(!hak_request_is_due(&request, &finder));
    request = request_for(7, "trim");
    request.pid_space = 12;
    CHECK(!hak_request_is_due(&request, &finder));
    request = request_for(7, "trim");
    request.start_ticks = 23;
    CHECK(!hak_request_is_due(&request, &finder));
    request = request_for(7, "trim");
    request.magic++;
    CHECK(!hak_request_is_due(&request, &finder));
}

TEST(an_unknown_pid_space_or_start_is_not_compared)
{
    struct control_request request = request_for(7, "trim");
    struct request_finder unknown = finder;
    unknown.pid_space = unknown.start_ticks = 0;
    CHECK(hak_request_is_due(&request, &unknown));
    request.pid_space = request.start_ticks = 0;
    CHECK(hak_request_is_due(&request, &finder));
}

TEST(a_request_that_was_begun_is_not_due_again)
{
    struct control_request request = request_for(7, "trim");
    request.state = REQUEST_TAKEN;
    CHECK(!hak_request_is_due(&request, &finder));
    request.state = REQUEST_ANSWERED;
    CHECK(!hak_request_is_due(&request, &finder));
}

TEST(the_words_are_read)
{
    CHECK_EQ(read_words("trim").kind, REQUEST_TRIM);
    CHECK_EQ(read_words("dump").kind, REQUEST_DUMP);
    CHECK_EQ(read_words("profile on").kind, REQUEST_PROFILE_ON);
    CHECK_EQ(read_words("profile off").kind, REQUEST_PROFILE_OFF);
    CHECK_EQ(read_words("profile dump").kind, REQUEST_PROFILE_DUMP);
    CHECK_STR(read_words("profile dump").value, "pprof");
    CHECK_EQ(read_words("profile dump folded").kind, REQUEST_PROFILE_DUMP);
    CHECK_STR(read_words("profile dump folded").value, "folded");
    struct request_wish set = read_words("set decay=2s=x");
    CHECK_EQ(set.kind, REQUEST_SET);
    CHECK_STR(set.name, "decay");
    CHECK_STR(set.value, "2s=x");
    struct request_wish watch = read_words("watch 60");
    CHECK_EQ(watch.kind, REQUEST_WATCH);
    CHECK_EQ(watch.seconds, 60);
    CHECK_EQ(read_words("watch 3600").seconds, 3600);
}

TEST(other_words_are_unknown)
{
    static const char *const words[] = {
        "",          "trim ",      "Trim",        "trimx",    "set",        "set ",
        "set decay", "set =1",     "setdecay=1",  "profile",  "profile no", "watch",
        "watch ",    "watch 3601", "watch 99999", "watch -1", "watch 5 ",   "dump /etc/passwd"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CHECK_EQ(read_words(words[i]).kind, REQUEST_UNKNOWN);
}

TEST(words_without_an_end_and_long_names_are_unknown)
{
    struct request_wish wish;
    struct control_request request = request_for(7, "");
    memset(request.words, 'a', sizeof request.words);
    hak_request_read(&request, &wish);
    CHECK_EQ(wish.kind, REQUEST_UNKNOWN);
    memcpy(request.words, "set ", 4);
    request.words[4 + sizeof wish.name] = '=';
    request.words[sizeof request.words - 1] = '\0';
    hak_request_read(&request, &wish);
    CHECK_EQ(wish.kind, REQUEST_UNKNOWN);
    request.words[3 + sizeof wish.name] = '=';
    hak_request_read(&request, &wish);
    CHECK_EQ(wish.kind, REQUEST_SET);
    CHECK_EQ(strlen(wish.name), sizeof wish.name - 1);
}
