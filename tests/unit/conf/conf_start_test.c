/* SPDX-License-Identifier: MIT */
/* tests/unit/conf/conf_start_test.c - the sources of settings and their order; modes, prices. */
#include "check.h"
#include "conf/conf.h"
#include "conf/conf_modes.h"

#include <fcntl.h>
#include <sys/stat.h>

/* What the program itself says; most tests say nothing. */
const char *hakmem_conf;

static char path[] = "/tmp/conf_start.XXXXXX";

static void leave(void)
{
    unlink(path);
}

/* A file of settings with `bytes` of `text`. */
static void write_file(const char *text, size_t bytes)
{
    static bool is_made;
    int fd = is_made ? open(path, O_WRONLY | O_TRUNC) : mkstemp(path);
    CHECK(fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes);
    close(fd);
    if (!is_made)
        atexit(leave);
    is_made = true;
}

static void read_settings(const char *text)
{
    write_file(text, strlen(text));
    hak_conf_read_file(path);
}

/* What `statement` writes on fd 2 is `line`, whole, after "hakmem: " and the path of the file or of
 * all such files. */
#define CHECK_SAYS_ONE_LINE(statement, said)                                                       \
    CHECK_IN_CHILD(statement,                                                                      \
                   strchr(child_.message, '\n') != NULL &&                                         \
                       strchr(child_.message, '\n')[1] == '\0' &&                                  \
                       strncmp(child_.message, "hakmem: ", 8) == 0,                                \
                   "one line", said)

TEST(a_file_sets_options)
{
    read_settings("# of this machine\ndecay = 2s\n\nforeign = forward # libc's\nSTATS_FILE=/x y\n");
    CHECK_EQ(hak_conf_number(decay), 2000);
    CHECK_EQ(hak_conf_number(foreign), FOREIGN_FORWARD);
    CHECK_STR(hak_conf_text(stats_file), "/x y");
    CHECK_EQ(hak_conf.source[CONF_decay], CONF_FILE);
    CHECK_EQ(hak_conf.source[CONF_retain], CONF_BUILT_IN);
}

TEST(a_mistake_in_a_file_is_reported_with_its_line)
{
    write_file("", 0); /* here, not in the children that read it: it goes at the end */
    CHECK_SAYS_ONE_LINE(read_settings("\ndecay = soon\n"),
                        "hakmem: /etc/hakmem.conf:2: decay: bad value 'soon',"
                        " accepted: 0ms to never (units ms, s)\n");
    CHECK_SAYS_ONE_LINE(read_settings("colour = red\n"),
                        "hakmem: /etc/hakmem.conf:1: colour: there is no such option\n");
    CHECK_SAYS_ONE_LINE(read_settings("decay\n"),
                        "hakmem: /etc/hakmem.conf:1: decay: no value given\n");
    CHECK_SAYS_ONE_LINE(read_settings("\x1b[2J\x80 = 1\n"),
                        "hakmem: /etc/hakmem.conf:1: ?[2J?: there is no such option\n");
}

TEST(a_byte_order_mark_is_no_part_of_the_first_name)
{
    CHECK_SAYS_NOTHING(read_settings("\xef\xbb\xbf"
                                     "retain = 3M\n"));
    read_settings("\xef\xbb\xbf"
                  "retain = 3M\n");
    CHECK_EQ(hak_conf_number(retain), 3 * HAK_MIB);
    CHECK_SAYS_ONE_LINE(read_settings("\n\xef\xbb\xbf"
                                      "retain = 3M\n"),
                        "hakmem: /etc/hakmem.conf:2: ???retain: there is no such option; the "
                        "nearest is retain\n");
}

TEST(a_mistake_in_a_file_does_not_hide_the_rest)
{
    read_settings("decay = soon\nretain = 3M\n");
    CHECK_EQ(hak_conf_number(decay), 125);
    CHECK_EQ(hak_conf_number(retain), 3 * HAK_MIB);
}

static void read_mistakes(int count)
{
    char text[HAK_CONF_FILE_BYTES];
    size_t used = 0;
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "x%d=1\n", i);
    write_file(text, used);
    hak_conf_read_file(path);
}

TEST(a_file_full_of_mistakes_is_given_up)
{
    write_file("", 0);
    CHECK_SAYS(read_mistakes(1000), "hakmem: /etc/hakmem.conf:8: x7: there is no such option\n"
                                    "hakmem: /tmp/conf_start.");
    CHECK_SAYS(read_mistakes(1000), ": too many errors, the rest is not read\n");
    CHECK_SAYS(read_mistakes(7), "hakmem: /etc/hakmem.conf:7: x6: there is no such option\n");
}

TEST(a_file_that_is_no_text_is_ignored_whole)
{
    static const char bytes[] = "retain = 3M\n\0\0\0\x7f";
    write_file(bytes, sizeof bytes - 1);
    CHECK_SAYS_ONE_LINE(hak_conf_read_file(path), ": is not text, ignored\n");
    hak_conf_read_file(path);
    CHECK_EQ(hak_conf_number(retain), 16 * HAK_MIB);
}

TEST(a_huge_file_is_ignored_whole)
{
    static char text[HAK_CONF_FILE_BYTES + 1];
    memset(text, '\n', sizeof text);
    memcpy(text, "retain=3M", 9);
    write_file(text, sizeof text);
    CHECK_SAYS_ONE_LINE(hak_conf_read_file(path), ": is larger than 16 KiB, ignored\n");
    hak_conf_read_file(path);
    CHECK_EQ(hak_conf_number(retain), 16 * HAK_MIB);
    write_file(text, sizeof text - 1);
    CHECK_SAYS_NOTHING(hak_conf_read_file(path));
    hak_conf_read_file(path);
    CHECK_EQ(hak_conf_number(retain), 3 * HAK_MIB);
}

TEST(a_path_that_is_no_file_is_reported_and_an_absent_file_is_not)
{
    CHECK_SAYS_NOTHING(hak_conf_read_file("/no/such/file"));
    CHECK_SAYS_ONE_LINE(hak_conf_read_file("/"), "hakmem: /: is not a regular file, ignored\n");
    CHECK_SAYS_ONE_LINE(hak_conf_read_file("/dev/zero"), "/dev/zero: is larger than 16 KiB");
    CHECK_SAYS_NOTHING(hak_conf_read_file("/dev/null"));
    mkstemp(path);
    atexit(leave);
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    alarm(20);
    CHECK_SAYS_ONE_LINE(hak_conf_read_file(path), ": is not a regular file, ignored\n");
}

TEST(the_program_may_have_settings_of_its_own)
{
    hakmem_conf = "decay:3s,retain:7M";
    hak_conf_start();
    CHECK_EQ(hak_conf_number(decay), 3000);
    CHECK_EQ(hak_conf_number(retain), 7 * HAK_MIB);
    CHECK_EQ(hak_conf.source[CONF_decay], CONF_PROGRAM);
}

TEST(a_mistake_of_the_program_is_reported_as_its_own)
{
    hakmem_conf = "decay:soon";
    CHECK_SAYS_ONE_LINE(hak_conf_start(), "hakmem: hakmem_conf: decay: bad value 'soon', accepted");
    hakmem_conf = "decay";
    CHECK_SAYS_ONE_LINE(hak_conf_start(), "hakmem: hakmem_conf: decay: no value given\n");
}

TEST(each_source_wins_over_those_before_it)
{
    read_settings("decay=1\nretain=1\nthread_cache=1M\nforeign=abort");
    hakmem_conf = "decay:2,retain:2,thread_cache:2M";
    setenv("HAKMEM_CONF", "decay:3,retain:3", 1);
    setenv("HAKMEM_DECAY", "4", 1);
    hak_conf_start();
    CHECK_EQ(hak_conf_number(decay), 4);
    CHECK_EQ(hak_conf.source[CONF_decay], CONF_VARIABLE);
    CHECK_EQ(hak_conf_number(retain), 3);
    CHECK_EQ(hak_conf.source[CONF_retain], CONF_PACKED);
    CHECK_EQ(hak_conf_number(thread_cache), 2 * HAK_MIB);
    CHECK_EQ(hak_conf.source[CONF_thread_cache], CONF_PROGRAM);
    CHECK_EQ(hak_conf_number(foreign), FOREIGN_ABORT);
    CHECK_EQ(hak_conf.source[CONF_foreign], CONF_FILE);
}

TEST(a_mode_sets_the_options_that_are_not_set)
{
    setenv("HAKMEM_CONF", "mode:minimal,thp:on", 1);
    hak_conf_start();
    CHECK_EQ(hak_conf_number(maintenance), MAINTENANCE_OFF);
    CHECK_EQ(hak_conf.source[CONF_maintenance], CONF_MODE);
    CHECK_EQ(hak_conf_number(thp), THP_ON);
    CHECK_EQ(hak_conf.source[CONF_thp], CONF_PACKED);
    CHECK_EQ(hak_conf.source[CONF_mode], CONF_PACKED);
}

TEST(a_price_sets_the_options_that_neither_a_mode_nor_the_user_set)
{
    hakmem_conf = "mode:fast,decay:5";
    hak_conf_start();
    CHECK_EQ(hak_conf_number(price), PRICE_SPEED);
    CHECK_EQ(hak_conf.source[CONF_price], CONF_MODE);
    CHECK_EQ(hak_conf.source[CONF_retain], CONF_PRICE);
    CHECK(hak_conf_number(retain) > 16 * (int64_t)HAK_MIB);
    CHECK_EQ(hak_conf_number(decay), 5);
}

TEST(a_price_that_the_user_set_wins_over_that_of_the_mode)
{
    hakmem_conf = "price:compact,mode:fast";
    hak_conf_start();
    CHECK_EQ(hak_conf_number(price), PRICE_COMPACT);
    CHECK(hak_conf_number(retain) < 16 * (int64_t)HAK_MIB);
}

TEST(the_last_mode_named_is_the_only_one)
{
    hakmem_conf = "mode:minimal";
    setenv("HAKMEM_MODE", "learning", 1);
    hak_conf_start();
    CHECK_EQ(hak_conf_number(maintenance), MAINTENANCE_ON);
    CHECK(hak_conf_number(learn) != 0);
}

TEST(mode_realtime_keeps_memory_and_makes_no_queries)
{
    setenv("HAKMEM_MODE", "realtime", 1);
    hak_conf_start();
    CHECK_EQ(hak_conf_number(mode), MODE_REALTIME);
    CHECK_EQ(hak_conf_number(prewarm), 64 * (int64_t)HAK_MIB);
    CHECK_EQ(hak_conf_number(free_policy), 0);
    CHECK_EQ(hak_conf_number(maintenance), MAINTENANCE_OFF);
}

TEST(what_a_mode_implies_is_shown_as_the_modes)
{
    setenv("HAKMEM_SHOW_CONF", "1", 1);
    setenv("HAKMEM_MODE", "fast", 1);
    CHECK_SAYS(hak_conf_start(), "hakmem: price=speed (mode)\n");
    setenv("HAKMEM_MODE", "minimal", 1);
    setenv("HAKMEM_PRICE", "compact", 1);
    CHECK_SAYS(hak_conf_start(), "hakmem: price=compact (environment)\n");
    setenv("HAKMEM_CONF", "", 1);
    hakmem_conf = "retain:1T";
    CHECK_SAYS(hak_conf_start(), "hakmem: mode=minimal (environment)\n");
}

static void start_with(const char *settings)
{
    hakmem_conf = settings;
    hak_conf_start();
}

TEST(option_profile_without_learning_is_reported_in_one_line)
{
    CHECK_SAYS_ONE_LINE(
        start_with("learn:none,profile:/x"),
        "hakmem: without effect, since nothing is learned: profile (hakmem_conf)\n");
    CHECK_SAYS_ONE_LINE(start_with("mode:minimal,profile:/x"), "nothing is learned: profile");
}

TEST(what_has_an_effect_is_not)
{
    CHECK_SAYS_NOTHING(start_with(""));
    CHECK_SAYS_NOTHING(start_with("learn:all"));
    CHECK_SAYS_NOTHING(start_with("learn:sites,profile:/x"));
    CHECK_SAYS_NOTHING(start_with("learn:decay,profile:/x"));
    CHECK_SAYS_NOTHING(start_with("learn:none,mode:minimal"));
    CHECK_SAYS_NOTHING(start_with("mode:research,learn:big_cache"));
}

TEST(what_has_no_effect_is_no_mistake)
{
    setenv("HAKMEM_ABORT_CONF", "1", 1);
    CHECK_SAYS_ONE_LINE(start_with("learn:none,profile:/x"), "without effect");
    CHECK_ABORTS(start_with("learn:x"), "hakmem: hakmem_conf: learn");
}

/* Each row is accepted whole, and sets no mode. */
static void check_row(const char *word, const char *settings, enum conf_option option, int64_t at)
{
    int64_t number;
    CHECK(hak_conf_parse(&hak_conf_rows[option], word, strlen(word), &number));
    CHECK_EQ(number, at);
    struct conf_text text = {.at = settings, .end = settings + strlen(settings)};
    struct conf_pair pair;
    while (hak_conf_next_packed(&text, &pair)) {
        enum conf_option found = hak_conf_find_bytes(pair.name, pair.name_bytes);
        CHECK(found != CONF_COUNT && found != CONF_mode);
        CHECK(option != CONF_price || found != CONF_price);
        CHECK(pair.value != NULL &&
              hak_conf_parse(&hak_conf_rows[found], pair.value, pair.value_bytes, &number));
    }
}

TEST(every_row_of_the_modes_and_prices_is_accepted)
{
    int64_t at = 0;
#define X(word, settings) check_row(#word, settings, CONF_mode, at++);
    HAK_CONF_MODE_TABLE(X)
    CHECK_EQ(at - 1, hak_conf_rows[CONF_mode].most);
    at = 0;
#undef X
#define X(word, settings) check_row(#word, settings, CONF_price, at++);
    HAK_CONF_PRICE_TABLE(X)
#undef X
    CHECK_EQ(at - 1, hak_conf_rows[CONF_price].most);
}

TEST(the_default_mode_and_price_imply_nothing)
{
    unsetenv("HAKMEM_GUARD_RATE"); /* as fake_pages.c sets it */
    hak_conf_start();
    for (int i = 0; i < CONF_COUNT; i++) {
        CHECK_EQ(hak_conf.number[i], hak_conf_rows[i].initial);
        CHECK_EQ(hak_conf.source[i], CONF_BUILT_IN);
    }
}
