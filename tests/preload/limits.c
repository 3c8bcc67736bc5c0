/* SPDX-License-Identifier: MIT */
/* tests/preload/limits.c - little address space: `ulimit -v 262144`, as batch systems and judges
 * set it. Out of memory is NULL and ENOMEM, everything stays as it was, and after frees there is
 * memory again. If this fails, programs that handle a full memory die, or lose what they had. */
#include "program.h"

#define LIMIT_BYTES (256ul << 20)
#define MOST_BLOCKS (32u << 20)
#define THREADS 100

/* The limit counts from the start of hakmem, that is, of the program. */
static void become_limited(const char *part)
{
    struct rlimit limit = {LIMIT_BYTES, LIMIT_BYTES};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    become(part);
}

static void check_limited(const char *part)
{
    time_limit(110);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        become_limited(part);
    CHECK_CHILD_ENDS_WELL(pid, 100000);
}

static pthread_barrier_t barrier;
static _Atomic unsigned refused_count;
static _Atomic unsigned damaged_count;

static void *allocate_a_while(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    char *blocks[50] = {NULL};
    size_t bytes[50] = {0};
    for (unsigned i = 0; i < 2000; i++) {
        unsigned at = next_random(&state) % 50;
        if (!is_filled(blocks[at], bytes[at], at))
            damaged_count++;
        free(blocks[at]);
        bytes[at] = 1 + next_random(&state) % 4000;
        blocks[at] = malloc(bytes[at]);
        if (blocks[at] == NULL) {
            bytes[at] = 0;
            refused_count++;
        }
        fill(blocks[at], bytes[at], at);
    }
    /* At one moment all have what they need. */
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 50; i++)
        free(blocks[i]);
    return NULL;
}

PART(what_a_hundred_threads_do)
{
    check_is_served();
    pthread_attr_t attributes;
    pthread_t threads[THREADS];
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], &attributes, allocate_a_while, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(refused_count, 0);
    CHECK_EQ(damaged_count, 0);
}

TEST(a_hundred_threads_live_in_256_MiB_of_address_space)
{
    check_limited("what_a_hundred_threads_do");
}

/* Blocks of one size in a list that is made of them, so that counting needs no other memory. */
struct link {
    struct link *next;
    unsigned number;
};

static unsigned allocate_until_refused(struct link **list, size_t bytes)
{
    unsigned count = 0;
    while (count < MOST_BLOCKS) {
        errno = 0;
        struct link *link = malloc(bytes);
        if (link == NULL) {
            CHECK_EQ(errno, ENOMEM);
            break;
        }
        link->next = *list;
        link->number = ++count;
        fill(link + 1, bytes < 4096 ? bytes - sizeof *link : 4096, count);
        *list = link;
    }
    CHECK(count < MOST_BLOCKS);
    return count;
}

static void check_and_free(struct link *list, size_t bytes, unsigned count)
{
    while (list != NULL) {
        struct link *next = list->next;
        if (list->number != count ||
            !is_filled(list + 1, bytes < 4096 ? bytes - sizeof *list : 4096, count))
            CHECK_FAILED("block %u is damaged", count);
        free(list);
        list = next;
        count--;
    }
    CHECK_EQ(count, 0);
}

/* With nothing left, every entry refuses as its standard says; what was there is still there. */
static void check_refusals(void *some, size_t bytes)
{
    void *result = some;
    unsigned char before = *(unsigned char *)some;
    CHECK(calloc(1, bytes) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(realloc(some, 2 * bytes + (32 << 20)) == NULL && errno == ENOMEM);
    CHECK_EQ(*(unsigned char *)some, before);
    errno = 0;
    CHECK(reallocarray(some, 64, 1 << 20) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(aligned_alloc(1 << 20, 32 << 20) == NULL && errno == ENOMEM);
    errno = 77;
    CHECK_EQ(posix_memalign(&result, 4096, 32 << 20), ENOMEM);
    CHECK_EQ(errno, 77);
    CHECK_EQ(result, some);
}

static void fill_and_free(size_t bytes)
{
    unsigned first = 0;
    for (unsigned round = 0; round < 3; round++) {
        struct link *list = NULL;
        unsigned count = allocate_until_refused(&list, bytes);
        CHECK(list != NULL);
        /* A good part of the limit could be used, and as much the next time; hardened mode's marks
         * take a fifth. */
        int is_hardened = getenv("HAKMEM_MODE") != NULL;
        if ((uint64_t)count * bytes < LIMIT_BYTES / (is_hardened ? 3 : 2))
            CHECK_FAILED("only %u blocks of %zu bytes in round %u", count, bytes, round);
        if (round == 0)
            first = count;
        else if (count < first - first / 10)
            CHECK_FAILED("%u blocks of %zu bytes, then only %u", first, bytes, count);
        check_refusals(list, bytes);
        check_and_free(list, bytes, count);
    }
}

PART(what_fills_memory_with_small_blocks)
{
    fill_and_free(48);
}

PART(what_fills_memory_with_middle_blocks)
{
    fill_and_free(20000);
}

PART(what_fills_memory_with_large_blocks)
{
    fill_and_free(1 << 20);
}

TEST(small_blocks_run_out_and_come_back)
{
    check_limited("what_fills_memory_with_small_blocks");
}

TEST(middle_blocks_run_out_and_come_back)
{
    check_limited("what_fills_memory_with_middle_blocks");
}

TEST(large_blocks_run_out_and_come_back)
{
    check_limited("what_fills_memory_with_large_blocks");
}

/* What one size gave back serves the other. */
PART(what_fills_memory_with_one_size_after_the_other)
{
    static const size_t sizes[] = {64, 1 << 20, 3000, 100000, 16};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct link *list = NULL;
        unsigned count = allocate_until_refused(&list, sizes[i]);
        if ((uint64_t)count * sizes[i] < LIMIT_BYTES / 4)
            CHECK_FAILED("only %u blocks of %zu bytes", count, sizes[i]);
        check_and_free(list, sizes[i], count);
    }
}

TEST(memory_freed_at_one_size_serves_another)
{
    check_limited("what_fills_memory_with_one_size_after_the_other");
}

static void *run_out_together(void *argument)
{
    size_t bytes = (size_t)argument;
    for (unsigned round = 0; round < 3; round++) {
        struct link *list = NULL;
        pthread_barrier_wait(&barrier);
        unsigned count = allocate_until_refused(&list, bytes);
        pthread_barrier_wait(&barrier);
        check_and_free(list, bytes, count);
    }
    return NULL;
}

PART(what_fills_memory_from_several_threads)
{
    static const size_t sizes[] = {100, 3000, 40000, 500000};
    pthread_t threads[4];
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, 4), 0);
    for (unsigned i = 0; i < 4; i++)
        threads[i] = start_thread(run_out_together, (void *)sizes[i]);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    free(hidden(malloc(10 << 20)));
}

TEST(threads_that_run_out_together_keep_what_they_have)
{
    check_limited("what_fills_memory_from_several_threads");
}

/* Nothing that could be had, but absurd: refused at once, without taking what is there. */
TEST(absurd_requests_are_refused)
{
    CHECK(malloc((size_t)hidden((void *)PTRDIFF_MAX)) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(malloc((size_t)hidden((void *)SIZE_MAX)) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc((size_t)hidden((void *)(SIZE_MAX / 2)), 3) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(malloc((size_t)hidden((void *)((size_t)1 << 46))) == NULL && errno == ENOMEM);
    CHECK(malloc(100) != NULL);
}
