/* SPDX-License-Identifier: MIT */
/* conf/conf.h - options as they were given, frozen at start.
 *
 * Owns        struct conf. Sources, later ones win: built-in, what the price and then what the mode
 *             implies, /etc/hakmem.conf, the program's own variable hakmem_conf, HAKMEM_CONF
 *             ("name=value,name=value"), HAKMEM_<NAME>. Not options: HAKMEM_SHOW_CONF=1 lists all
 *             rows on standard error, and nothing else, HAKMEM_ABORT_CONF=1 aborts at a wrong
 *             setting.
 * Invariants  every value is within its range; an invalid name or value is reported in one line
 *             with the accepted range and ignored; so is `profile` where nothing is learned. The
 *             environment of a privileged program is ignored.
 * Threads     written once before any other thread can read it.
 * Tests       tests/unit/conf/conf_test.c, tests/unit/conf/conf_start_test.c,
 *             tests/preload/conf_preload.sh, tests/preload/conf_file_preload.sh
 */
#ifndef HAK_CONF_CONF_H
#define HAK_CONF_CONF_H

#include "conf/conf_text.h"
#include "conf/conf_value.h"

/* Settings of the machine; a file larger than this is not read. */
#define HAK_CONF_PATH "/etc/hakmem.conf"
#define HAK_CONF_FILE_BYTES 16384

enum conf_source {
    CONF_BUILT_IN,
    CONF_PRICE,
    CONF_MODE,
    CONF_FILE,
    CONF_PROGRAM,
    CONF_PACKED,
    CONF_VARIABLE,
    CONF_RUNNING, /* changed while the program runs */
    CONF_SOURCE_COUNT
};

struct conf {
    int64_t number[CONF_COUNT];
    uint8_t
        source[CONF_COUNT]; /* enum conf_source; beside the numbers, on a page that is written */
    char text[CONF_COUNT][HAK_CONF_TEXT_BYTES];
};
extern struct conf hak_conf;

/* Relaxed: a value may change while the program runs, and orders nothing. */
#define hak_conf_number(name) __atomic_load_n(&hak_conf.number[CONF_##name], __ATOMIC_RELAXED)
#define hak_conf_text(name) (hak_conf.text[CONF_##name])
/* True when the program has changed it while it runs. */
#define hak_conf_is_changed(name)                                                                  \
    (__atomic_load_n(&hak_conf.source[CONF_##name], __ATOMIC_RELAXED) == CONF_RUNNING)

/* True when some blocks are to be fenced. */
bool hak_conf_wants_fence(void);

enum conf_foreign { FOREIGN_IGNORE, FOREIGN_FORWARD, FOREIGN_ABORT };
enum conf_caches { CACHES_PROCESSOR, CACHES_THREAD };
enum conf_maintenance { MAINTENANCE_OFF, MAINTENANCE_ON };
enum conf_zero_size { ZERO_SIZE_INACCESSIBLE, ZERO_SIZE_ORDINARY };
enum conf_thp { THP_OFF, THP_AUTO, THP_ON };
enum conf_crash_report { CRASH_REPORT_OFF, CRASH_REPORT_ON };
enum conf_heap_profile {
    HEAP_PROFILE_OFF,
    HEAP_PROFILE_ON,
    HEAP_PROFILE_LEAKS,
    HEAP_PROFILE_PPROF,
    HEAP_PROFILE_HEAP_V2,
    HEAP_PROFILE_FOLDED,
    HEAP_PROFILE_JSON
};
enum conf_blackbox { BLACKBOX_OFF, BLACKBOX_ON };
enum conf_stats_shm { STATS_SHM_OFF, STATS_SHM_ON, STATS_SHM_NEVER };
enum conf_stats {
    STATS_OFF,
    STATS_TEXT,
    STATS_RAW,
    STATS_JSON,
    STATS_XML,
    STATS_OPENMETRICS,
    STATS_EXACT
};
enum conf_fence_side { FENCE_SIDE_END, FENCE_SIDE_START };
enum conf_mode { MODE_RESEARCH = 4, MODE_REALTIME = 7 };
/* Bits. */
enum conf_learn { LEARN_BIG_CACHE = 1, LEARN_DECAY = 2, LEARN_SITES = 4, LEARN_MATCHES = 8 };
enum conf_price { PRICE_SPEED, PRICE_EVEN, PRICE_COMPACT };

/* Reads all sources; reports what is wrong with them. */
void hak_conf_start(void);

/* The parts of it: the settings of a file, what a source of the packed form says,
 * "name=value,name=value", and what mode and price imply for options that are still built in. */
void hak_conf_read_file(const char *path);
void hak_conf_read_packed(const char *packed, enum conf_source source);
void hak_conf_imply(void);

/* Sets one option from text that ends at `end`; false: unknown name or bad value, reported. */
bool hak_conf_set(const char *name, size_t name_bytes, const char *value, size_t value_bytes,
                  enum conf_source source);

/* The same for a setting as it stands in a text. */
bool hak_conf_set_pair(const struct conf_pair *pair, enum conf_source source);

/* Prints "hakmem: ", the path, ": " and `what` in one line. */
void hak_conf_tell_file(const char *path, const char *what);

/* The same of a file of settings: aborts if HAKMEM_ABORT_CONF is set. */
void hak_conf_report_file(const char *path, const char *what);

/* From now on a wrong setting aborts. */
void hak_conf_be_strict(bool is_strict);

/* How a source is called in the listing. */
const char *hak_conf_source_name(enum conf_source source);

/* The option of that name; CONF_COUNT: there is none. */
enum conf_option hak_conf_find(const char *name);

/* Sets an option that is a number while the program runs; false: the value is wrong. Silent. */
bool hak_conf_change(enum conf_option option, const char *value);

/* Gives an option less than was asked for, from whatever source: there is no more. */
void hak_conf_lower(enum conf_option option, int64_t number);

/* After a change of the price: its values for options that were not set. */
void hak_conf_follow_price(void);

/* Writes the value of an option as the listing has it, ended by 0, to `value` of `value_bytes`
 * bytes; false: it does not fit. */
bool hak_conf_read(enum conf_option option, char *value, size_t value_bytes);

/* Prints `hakmem: name=value (source)` for each option. */
void hak_conf_show(void);

#endif
