/* SPDX-License-Identifier: MIT */
/* tests/preload/limits.c - little address space: `ulimit -v 262144`, as batch systems and judges
 * set it. Out of memory is NULL and ENOMEM, everything stays as it was, and after frees there is
 * memory again. If this fails, programs that handle a full memory die, or lose what they had. */
#include "until_refused.h"

#define LIMIT_BYTES (256ul << 20)
#define THREADS 100

/* The limit counts from the start of hakmem, that is, of the program: a sentence that begins so
 * begins again under it. */
#define UNDER_LIMIT() be_limited(__func__)
static void be_limited(const char *sentence)
{
    struct rlimit limit;
    time_limit(500);
    CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    if (limit.rlim_cur == LIMIT_BYTES)
        return;
    limit.rlim_cur = limit.rlim_max = LIMIT_BYTES;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    become(sentence);
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

TEST(a_hundred_threads_live_in_256_MiB_of_address_space)
{
    UNDER_LIMIT();
    check_is_served();
    pthread_attr_t attributes;
    pthread_t threads[THREADS];
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], &attributes, allocate_a_while, (void *)(i + 1)), 0);
    join_threads(threads, THREADS);
    CHECK_EQ(refused_count, 0);
    CHECK_EQ(damaged_count, 0);
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

TEST(small_blocks_run_out_and_come_back)
{
    UNDER_LIMIT();
    fill_and_free(48);
}

TEST(middle_blocks_run_out_and_come_back)
{
    UNDER_LIMIT();
    fill_and_free(20000);
}

TEST(large_blocks_run_out_and_come_back)
{
    UNDER_LIMIT();
    fill_and_free(1 << 20);
}

/* What one size gave back serves the other. */
TEST(memory_freed_at_one_size_serves_another)
{
    UNDER_LIMIT();
    static const size_t sizes[] = {64, 1 << 20, 3000, 100000, 16};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct link *list = NULL;
        unsigned count = allocate_until_refused(&list, sizes[i]);
        if ((uint64_t)count * sizes[i] < LIMIT_BYTES / 4)
            CHECK_FAILED("only %u blocks of %zu bytes", count, sizes[i]);
        check_and_free(list, sizes[i], count);
    }
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

TEST(threads_that_run_out_together_keep_what_they_have)
{
    UNDER_LIMIT();
    static const size_t sizes[] = {100, 3000, 40000, 500000};
    pthread_t threads[4];
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, 4), 0);
    for (unsigned i = 0; i < 4; i++)
        threads[i] = start_thread(run_out_together, (void *)sizes[i]);
    join_threads(threads, 4);
    free(hidden(malloc(10 << 20)));
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
