/* SPDX-License-Identifier: MIT */
/* tests/preload/bad_input.c - wrong arguments, one by one: each function answers with the error
 * that its standard or manual names, and what no function can answer ends the process with a line
 * that says what happened. If this fails, a mistake in a program becomes damage somewhere else.
 *
 * Sources: C17 7.22.3, C23 7.24.3, POSIX.1-2024 (free, malloc, posix_memalign, reallocarray), glibc
 * manual 3.2.3 (Unconstrained Allocation), and <hakmem/hakmem.h> for what these leave undefined. */
#include "surface.h"

#define HAKMEM_WEAK
#include "public.h"

#include <malloc.h>
#include <stdbool.h>

#define LARGE_BYTES ((size_t)300000)
#define HIGH_BIT ((size_t)1 << 63)

static hakmem_heap *heap; /* of the sentence that runs */

static void start(void)
{
    check_is_served();
    heap = new_heap();
}

/* ---- alignments ------------------------------------------------------------------------------ */

static void *heap_aligned_alloc(size_t alignment, size_t bytes)
{
    return hakmem_heap_aligned_alloc(heap, alignment, bytes);
}

typedef void *take_aligned(size_t alignment, size_t bytes);
static take_aligned *const strict_functions[] = {aligned_alloc, hakmem_aligned_alloc,
                                                 heap_aligned_alloc};
static const size_t no_powers_of_two[] = {
    0, 3, 5, 6, 7, 9, 12, 24, 48, 100, 1000, 4095, HIGH_BIT | 1, SIZE_MAX / 2, SIZE_MAX};
#define WRONG_COUNT (sizeof no_powers_of_two / sizeof *no_powers_of_two)

/* C23 7.24.3.1: "If alignment is not a valid alignment supported ..., the function fails by
 * returning a null pointer"; glibc sets EINVAL. */
TEST(aligned_alloc_and_its_twins_refuse_with_einval_what_is_no_power_of_two)
{
    start();
    for (unsigned i = 0; i < sizeof strict_functions / sizeof *strict_functions; i++)
        for (unsigned j = 0; j < WRONG_COUNT; j++) {
            errno = 0;
            CHECK(strict_functions[i](hidden_bytes(no_powers_of_two[j]), 100) == NULL);
            CHECK_EQ(errno, EINVAL);
        }
}

typedef int store_aligned(void **result, size_t alignment, size_t bytes);
static store_aligned *const posix_functions[] = {posix_memalign, __posix_memalign,
                                                 hakmem_posix_memalign};

/* POSIX.1-2024, posix_memalign: [EINVAL] "not a power of two multiple of sizeof(void *)"; the
 * error is returned, and *memptr is left alone; errno is as it was (glibc). */
TEST(posix_memalign_and_its_twins_return_einval_and_change_nothing)
{
    static const size_t too_small[] = {1, 2, 4};
    for (unsigned i = 0; i < sizeof posix_functions / sizeof *posix_functions; i++)
        for (unsigned j = 0; j < WRONG_COUNT + 3; j++) {
            void *result = &result;
            size_t wrong = j < 3 ? too_small[j] : no_powers_of_two[j - 3];
            errno = UNTOUCHED;
            CHECK_EQ(posix_functions[i](&result, hidden_bytes(wrong), 100), EINVAL);
            CHECK(result == (void *)&result);
            CHECK_EQ(errno, UNTOUCHED);
        }
}

/* glibc manual, memalign: the boundary must be a power of two; glibc itself rounds others up, and
 * refuses with EINVAL what cannot be rounded. */
TEST(memalign_rounds_up_what_is_no_power_of_two)
{
    static take_aligned *const functions[] = {memalign, __libc_memalign};
    for (unsigned i = 0; i < 2; i++) {
        for (size_t wrong = 3; wrong < 100000; wrong = wrong * 3 + 2) {
            char *block = functions[i](hidden_bytes(wrong), 100);
            CHECK(block != NULL && malloc_usable_size(block) >= 100);
            size_t least = 1;
            while (least < wrong)
                least *= 2;
            CHECK_EQ((uintptr_t)block % least, 0);
            free(block);
        }
        errno = 0;
        CHECK(functions[i](hidden_bytes(HIGH_BIT | 1), 100) == NULL);
        CHECK_EQ(errno, EINVAL);
    }
}

/* Powers of two that no memory has: ENOMEM, not EINVAL. */
TEST(alignments_beyond_all_memory_are_enomem)
{
    start();
    for (size_t alignment = (size_t)1 << 50; alignment != 0; alignment <<= 1) {
        void *result = &result;
        for (unsigned i = 0; i < sizeof strict_functions / sizeof *strict_functions; i++) {
            errno = 0;
            CHECK(strict_functions[i](hidden_bytes(alignment), 100) == NULL);
            CHECK_EQ(errno, ENOMEM);
        }
        CHECK_EQ(posix_memalign(&result, hidden_bytes(alignment), 100), ENOMEM);
        CHECK(result == (void *)&result);
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static char *kept; /* what realloc must leave as it is */

/* Each way to ask for n bytes. */
/* clang-format off */
#define TAKES(X)                                                                                   \
    X(malloc, malloc(n))                                                                           \
    X(calloc_1, calloc(1, n))                                                                      \
    X(calloc_n, calloc(n, 1))                                                                      \
    X(realloc, realloc(NULL, n))                                                                   \
    X(reallocarray, reallocarray(NULL, 1, n))                                                      \
    X(reallocf, reallocf(NULL, n))                                                                 \
    X(aligned_16, aligned_alloc(16, n))                                                            \
    X(aligned_64k, aligned_alloc(65536, n))                                                        \
    X(memalign, memalign(64, n))                                                                   \
    X(valloc, valloc(n))                                                                           \
    X(pvalloc, pvalloc(n))                                                                         \
    X(libc_malloc, __libc_malloc(n))                                                               \
    X(libc_calloc, __libc_calloc(1, n))                                                            \
    X(libc_realloc, __libc_realloc(NULL, n))                                                       \
    X(libc_memalign, __libc_memalign(64, n))                                                       \
    X(libc_valloc, __libc_valloc(n))                                                               \
    X(libc_pvalloc, __libc_pvalloc(n))                                                             \
    X(hakmem_malloc, hakmem_malloc(n))                                                             \
    X(hakmem_calloc, hakmem_calloc(1, n))                                                          \
    X(hakmem_realloc, hakmem_realloc(NULL, n))                                                     \
    X(hakmem_array, hakmem_reallocarray(NULL, n, 1))                                               \
    X(hakmem_aligned, hakmem_aligned_alloc(64, n))                                                 \
    X(heap, hakmem_heap_malloc(heap, n))                                                           \
    X(heap_calloc, hakmem_heap_calloc(heap, 1, n))                                                 \
    X(heap_aligned, hakmem_heap_aligned_alloc(heap, 64, n))                                        \
    X(heap_realloc, hakmem_heap_realloc(heap, NULL, n))                                            \
    X(grow_realloc, realloc(kept, n))                                                              \
    X(grow_reallocarray, reallocarray(kept, n, 1))                                                 \
    X(grow_libc_realloc, __libc_realloc(kept, n))                                                  \
    X(grow_hakmem_realloc, hakmem_realloc(kept, n))
/* clang-format on */
#define X(name, call)                                                                              \
    static void *take_##name(size_t n)                                                             \
    {                                                                                              \
        return call;                                                                               \
    }
TAKES(X)
#undef X
#define X(name, call) {#name, take_##name},
static const struct {
    const char *name;
    void *(*take)(size_t bytes);
} functions[] = {TAKES(X)};
#undef X
#define FUNCTION_COUNT (sizeof functions / sizeof *functions)

/* C17 6.5.6 with glibc manual (malloc): no object is larger than PTRDIFF_MAX. C17 7.22.3.5: a
 * realloc that fails leaves the block. */
TEST(sizes_above_ptrdiff_max_are_enomem_in_every_function)
{
    static const size_t above[] = {(size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX + 4096,
                                   SIZE_MAX - 65536,        SIZE_MAX - 4095,
                                   SIZE_MAX - 15,           SIZE_MAX};
    start();
    kept = malloc(100);
    fill(kept, 100, 9);
    for (unsigned i = 0; i < FUNCTION_COUNT; i++)
        for (unsigned j = 0; j < sizeof above / sizeof *above; j++) {
            errno = 0;
            if (functions[i].take(hidden_bytes(above[j])) != NULL)
                CHECK_FAILED("%s gave a block of %zx bytes", functions[i].name, above[j]);
            CHECK_EQ(errno, ENOMEM);
            CHECK(is_filled(kept, 100, 9));
        }
    for (unsigned i = 0; i < sizeof posix_functions / sizeof *posix_functions; i++)
        for (unsigned j = 0; j < sizeof above / sizeof *above; j++) {
            void *result = &result;
            errno = UNTOUCHED;
            CHECK_EQ(posix_functions[i](&result, 64, hidden_bytes(above[j])), ENOMEM);
            CHECK(result == (void *)&result && errno == UNTOUCHED);
        }
}

static void *heap_calloc(size_t count, size_t bytes)
{
    return hakmem_heap_calloc(heap, count, bytes);
}

static void *array(size_t count, size_t bytes)
{
    return reallocarray(kept, count, bytes);
}

static void *hakmem_array(size_t count, size_t bytes)
{
    return hakmem_reallocarray(kept, count, bytes);
}

/* C17 7.22.3.2 (glibc: ENOMEM); POSIX.1-2024, reallocarray: [ENOMEM] when the product overflows. */
TEST(products_that_overflow_are_enomem_in_every_function)
{
    static void *(*const multiply[])(size_t, size_t) = {calloc,      __libc_calloc, hakmem_calloc,
                                                        heap_calloc, array,         hakmem_array};
    static const size_t factors[][2] = {{SIZE_MAX, 2},
                                        {2, SIZE_MAX},
                                        {(size_t)1 << 32, (size_t)1 << 32},
                                        {((size_t)1 << 32) + 1, (size_t)1 << 32},
                                        {SIZE_MAX / 16 + 1, 16},
                                        {SIZE_MAX, SIZE_MAX}};
    start();
    kept = malloc(100);
    fill(kept, 100, 9);
    for (unsigned i = 0; i < sizeof multiply / sizeof *multiply; i++)
        for (unsigned j = 0; j < sizeof factors / sizeof *factors; j++) {
            errno = 0;
            CHECK(multiply[i](hidden_bytes(factors[j][0]), hidden_bytes(factors[j][1])) == NULL);
            CHECK_EQ(errno, ENOMEM);
            CHECK(is_filled(kept, 100, 9));
        }
}

/* ---- pointers -------------------------------------------------------------------------------- */

/* clang-format off */
static void give_free(void *p) { free(hidden(p)); }
static void give_cfree(void *p) { cfree(hidden(p)); }
static void give_libc(void *p) { __libc_free(hidden(p)); }
static void give_sized(void *p) { free_sized(hidden(p), 100); }
static void give_aligned_sized(void *p) { free_aligned_sized(hidden(p), 8, 100); }
static void give_hakmem(void *p) { hakmem_free(hidden(p)); }
static void give_hakmem_sized(void *p) { hakmem_free_sized(hidden(p), 100); }
static void give_hakmem_aligned(void *p) { hakmem_free_aligned_sized(hidden(p), 8, 100); }
static void give_realloc_0(void *p) { if (p != NULL) kept = realloc(hidden(p), hidden_bytes(0)); }
static void resize_realloc(void *p) { kept = realloc(hidden(p), 900000); }
static void resize_reallocarray(void *p) { kept = reallocarray(hidden(p), 9, 100000); }
static void resize_reallocf(void *p) { kept = reallocf(hidden(p), 900000); }
static void resize_libc(void *p) { kept = __libc_realloc(hidden(p), 900000); }
static void resize_hakmem(void *p) { kept = hakmem_realloc(hidden(p), 900000); }
static void resize_hakmem_array(void *p) { kept = hakmem_reallocarray(hidden(p), 9, 100000); }
/* clang-format on */

typedef void use(void *block);
static use *const frees[] = {give_free,         give_cfree,          give_libc,
                             give_sized,        give_aligned_sized,  give_hakmem,
                             give_hakmem_sized, give_hakmem_aligned, give_realloc_0};
static use *const resizes[] = {resize_realloc, resize_reallocarray, resize_reallocf,
                               resize_libc,    resize_hakmem,       resize_hakmem_array};
#define FREES (sizeof frees / sizeof *frees)
#define RESIZES (sizeof resizes / sizeof *resizes)

/* C17 7.22.3.3, C23 7.24.3.4: "If ptr is a null pointer, no action occurs"; 7.22.3.5: realloc of
 * NULL is malloc; glibc manual: malloc_usable_size(NULL) is 0. */
TEST(null_is_nothing_to_free_and_a_request_to_resize)
{
    start();
    for (unsigned i = 0; i < FREES; i++) {
        errno = UNTOUCHED;
        frees[i](NULL);
        CHECK_EQ(errno, UNTOUCHED);
    }
    for (unsigned i = 0; i < RESIZES; i++) {
        resizes[i](NULL);
        CHECK(kept != NULL && malloc_usable_size(kept) >= 900000);
        free(kept);
    }
    CHECK_EQ(malloc_usable_size(hidden(NULL)), 0);
    CHECK_EQ(hakmem_usable_size(NULL), 0);
    CHECK_EQ(hakmem_is_owned(NULL), 0);
    CHECK(hakmem_heap_of(NULL) == NULL);
    hakmem_heap_free(heap, NULL);
    CHECK((kept = hakmem_heap_realloc(heap, NULL, 100)) != NULL);
    CHECK(hakmem_heap_of(kept) == heap);
    hakmem_heap_destroy(NULL);
}

static uint64_t foreign_frees(void)
{
    return stats_now().foreign_free_count;
}

/* Memory that looks as a block of glibc's malloc does: its size with flags stands before it. */
static char *map_a_block(void)
{
    size_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    page[1] = 256 | 1;
    return (char *)(page + 2);
}

/* Undefined in C; here a pointer that may be of libc's malloc is left alone and counted (option
 * foreign). */
TEST(foreign_pointers_are_left_alone_and_counted)
{
    char *foreign = map_a_block(), *mapped = map_a_block();
    memcpy(foreign, "kept", 5);
    uint64_t before = foreign_frees();
    for (unsigned i = 0; i < FREES; i++) {
        errno = UNTOUCHED;
        frees[i](foreign);
        frees[i](mapped);
        CHECK_EQ(errno, UNTOUCHED);
    }
    CHECK_EQ(foreign_frees() - before, 2 * FREES);
    CHECK_STR(foreign, "kept");
    CHECK_EQ(malloc_usable_size(hidden(foreign)), 0);
    CHECK_EQ(hakmem_usable_size(foreign), 0);
    CHECK_EQ(hakmem_is_owned(foreign), 0);
    CHECK(hakmem_heap_of(foreign) == NULL);
}

/* The program's own variables are of no allocator; they are counted if option foreign is set. */
TEST(variables_are_left_alone_where_the_option_is_set)
{
    static _Alignas(16) char variable[128] = "kept";
    CHECK_EQ(hakmem_option_set("foreign", "ignore"), 0);
    uint64_t before = foreign_frees();
    for (unsigned i = 0; i < FREES; i++)
        frees[i](variable);
    CHECK_EQ(foreign_frees() - before, FREES);
    CHECK_STR(variable, "kept");
}

/* Only libc knows how long its block is. */
TEST(foreign_blocks_are_resized_by_libc)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    CHECK(libc != NULL);
    void *(*libc_malloc)(size_t) = (void *(*)(size_t))dlsym(libc, "malloc");
    CHECK(libc_malloc != NULL && libc_malloc != malloc);
    for (unsigned i = 0; i < RESIZES; i++) {
        char *block = libc_malloc(100);
        fill(block, 100, i);
        uint64_t before = foreign_frees();
        resizes[i](block);
        CHECK(kept != NULL && is_filled(kept, 100, i));
        CHECK_EQ(hakmem_is_owned(kept), 0);
        CHECK_EQ(foreign_frees() - before, 1);
    }
}

static void *freed_block(size_t bytes)
{
    kept = malloc(bytes); /* so that the slab stays */
    void *block = malloc(bytes);
    fill(block, bytes, 1);
    free(block);
    malloc_trim(0); /* what the thread has cached is flushed */
    return block;
}

static void use_freed(use *call, size_t bytes)
{
    call(freed_block(bytes));
    malloc_trim(0);
}

/* Undefined in C; reported at once for a large block, for a small one when its second copy comes
 * home. */
TEST(freed_blocks_are_not_freed_or_resized_again)
{
    CHECK_OWN_STDERR();
    for (unsigned i = 0; i < FREES; i++) {
        CHECK_ABORTS(use_freed(frees[i], 100), "hakmem: double free: pointer 0x");
        CHECK_ABORTS(use_freed(frees[i], 120), "block of 128 bytes, already free\n");
        CHECK_ABORTS(use_freed(frees[i], LARGE_BYTES), "hakmem: invalid free: pointer 0x");
        CHECK_ABORTS(use_freed(frees[i], LARGE_BYTES),
                     "nothing is allocated there: freed before, or never allocated\n");
    }
    for (unsigned i = 0; i < RESIZES; i++) {
        CHECK_ABORTS(use_freed(resizes[i], 100), "hakmem: double free: pointer 0x");
        CHECK_ABORTS(use_freed(resizes[i], LARGE_BYTES), "hakmem: invalid realloc: pointer 0x");
        CHECK_ABORTS(use_freed(resizes[i], LARGE_BYTES), "no block is live there\n");
    }
}

static void use_inside(use *call, size_t bytes, size_t offset)
{
    call((char *)malloc(bytes) + offset);
    malloc_trim(0);
}

static void ask_inside(void *block)
{
    kept += malloc_usable_size(hidden(block));
}

static void ask_hakmem_inside(void *block)
{
    kept += hakmem_usable_size(block);
}

/* Undefined in C; reported at once where a block's size is looked up, else when it is flushed. */
TEST(pointers_into_blocks_are_not_freed_or_resized)
{
    CHECK_OWN_STDERR();
    for (unsigned i = 0; i < FREES; i++) {
        CHECK_ABORTS(use_inside(frees[i], 100, 16), "hakmem: invalid free: pointer 0x");
        CHECK_ABORTS(use_inside(frees[i], 120, 8), "of 128 bytes, not the start of a block\n");
        CHECK_ABORTS(use_inside(frees[i], LARGE_BYTES, 16), "not the start of the block\n");
        CHECK_ABORTS(use_inside(frees[i], LARGE_BYTES, 131072),
                     "nothing is allocated there: freed before, or never allocated\n");
    }
    for (unsigned i = 0; i < RESIZES; i++) {
        CHECK_ABORTS(use_inside(resizes[i], 100, 16), "hakmem: invalid realloc: pointer 0x");
        CHECK_ABORTS(use_inside(resizes[i], LARGE_BYTES, 16), "not the start of the block\n");
        CHECK_ABORTS(use_inside(resizes[i], LARGE_BYTES, 131072), "no block is live there\n");
    }
    CHECK_ABORTS(use_inside(ask_inside, 100, 16), "hakmem: invalid malloc_usable_size: pointer");
    CHECK_ABORTS(use_inside(ask_hakmem_inside, LARGE_BYTES, 16), "not the start of the block\n");
}

/* ---- heaps and options ----------------------------------------------------------------------- */

static struct hakmem_heap_stats stats_of;
static void *block_of_heap;

/* clang-format off */
static void heap_use_malloc(hakmem_heap *h) { kept = hakmem_heap_malloc(h, 10); }
static void heap_use_large(hakmem_heap *h) { kept = hakmem_heap_malloc(h, LARGE_BYTES); }
static void heap_use_calloc(hakmem_heap *h) { kept = hakmem_heap_calloc(h, 2, 10); }
static void heap_use_aligned(hakmem_heap *h) { kept = hakmem_heap_aligned_alloc(h, 64, 10); }
static void heap_use_realloc(hakmem_heap *h) { kept = hakmem_heap_realloc(h, NULL, 10); }
static void heap_use_resize(hakmem_heap *h) { kept = hakmem_heap_realloc(h, block_of_heap, 10000); }
static void heap_use_free(hakmem_heap *h) { hakmem_heap_free(h, block_of_heap); }
static void heap_use_trim(hakmem_heap *h) { hakmem_heap_trim(h); }
static void heap_use_stats(hakmem_heap *h) { hakmem_heap_stats_get(h, &stats_of, sizeof stats_of); }
static void heap_use_destroy(hakmem_heap *h) { hakmem_heap_destroy(h); }
/* clang-format on */

static void (*const heap_uses[])(hakmem_heap *) = {
    heap_use_malloc, heap_use_large, heap_use_calloc, heap_use_aligned, heap_use_realloc,
    heap_use_resize, heap_use_free,  heap_use_trim,   heap_use_stats,   heap_use_destroy};
#define HEAP_USES (sizeof heap_uses / sizeof *heap_uses)

static void use_destroyed(void (*call)(hakmem_heap *))
{
    start();
    block_of_heap = hakmem_heap_malloc(heap, 100);
    hakmem_heap_destroy(heap);
    call(heap);
}

static void use_destroyed_while_its_record_serves_another(void (*call)(hakmem_heap *))
{
    hakmem_heap *old = heap;
    hakmem_heap_destroy(old);
    start();
    block_of_heap = hakmem_heap_malloc(heap, 100);
    call(old);
}

/* <hakmem/hakmem.h>: the handle of a destroyed heap is misuse, reported for certain. */
TEST(a_destroyed_heap_is_reported_by_every_function)
{
    CHECK_OWN_STDERR();
    for (unsigned i = 0; i < HEAP_USES; i++) {
        CHECK_ABORTS(use_destroyed(heap_uses[i]), "hakmem: invalid heap");
        CHECK_ABORTS(use_destroyed(heap_uses[i]), "the heap was destroyed\n");
        start();
        CHECK_ABORTS(use_destroyed_while_its_record_serves_another(heap_uses[i]),
                     "the heap was destroyed\n");
    }
}

TEST(what_is_no_heap_is_reported_by_every_function)
{
    CHECK_OWN_STDERR();
    static _Alignas(64) char words[256];
    start();
    block_of_heap = hakmem_heap_malloc(heap, 100);
    for (unsigned i = 0; i < HEAP_USES; i++) {
        if (heap_uses[i] != heap_use_destroy)
            CHECK_ABORTS(heap_uses[i](NULL), "not a heap\n");
        CHECK_ABORTS(heap_uses[i]((hakmem_heap *)(void *)words), "not a heap\n");
        CHECK_ABORTS(heap_uses[i](hidden(block_of_heap)), "not a heap\n");
    }
}

static void free_in_heap(void *block)
{
    hakmem_heap_free(heap, block);
}

static void resize_in_heap(void *block)
{
    kept = hakmem_heap_realloc(heap, block, 5000);
}

/* <hakmem/hakmem.h>: a block that is not of this heap is misuse. */
TEST(a_heap_takes_no_other_pointers)
{
    CHECK_OWN_STDERR();
    static _Alignas(16) char foreign[64];
    start();
    char *own = hakmem_heap_malloc(heap, 100), *large = hakmem_heap_malloc(heap, LARGE_BYTES);
    void *plain = malloc(100), *of_other = hakmem_heap_malloc(hakmem_heap_new(), 100);
    use *const calls[] = {free_in_heap, resize_in_heap};
    for (unsigned i = 0; i < 2; i++) {
        const char *said =
            i == 0 ? "hakmem: invalid heap free: " : "hakmem: invalid heap realloc: ";
        CHECK_ABORTS(calls[i](foreign), said);
        CHECK_ABORTS(calls[i](foreign), "not from hakmem\n");
        CHECK_ABORTS(calls[i](plain), "a block of another heap\n");
        CHECK_ABORTS(calls[i](of_other), "a block of another heap\n");
        CHECK_ABORTS(calls[i](own + 16), "not the start of a block\n");
        CHECK_ABORTS(calls[i](large + 16), "not the start of the block\n");
    }
}

/* <hakmem/hakmem.h>: EBUSY when it is too late, EINVAL for what does not exist or has no sense. */
TEST(options_that_come_too_late_or_are_wrong_change_nothing)
{
    static const struct {
        const char *name, *value;
        int result;
    } cases[] = {{"stats", "text", EBUSY},
                 {"stats_file", "/dev/null", EBUSY},
                 {"maintenance", "off", EBUSY},
                 {"no_such_option", "1", EINVAL},
                 {"", "1", EINVAL},
                 {"decay", "soon", EINVAL},
                 {"decay", "", EINVAL},
                 {"decay", "-2", EINVAL},
                 {"retain", "2T", EINVAL},
                 {"thread_cache", "1", EINVAL},
                 {"foreign", "kill", EINVAL}};
    char before[256], after[256];
    check_is_served();
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        int known = hakmem_option_get(cases[i].name, before, sizeof before);
        errno = UNTOUCHED;
        if (hakmem_option_set(cases[i].name, cases[i].value) != cases[i].result)
            CHECK_FAILED("%s=%s is not refused as it should be", cases[i].name, cases[i].value);
        CHECK_EQ(errno, UNTOUCHED);
        CHECK_EQ(hakmem_option_get(cases[i].name, after, sizeof after), known);
        if (known == 0)
            CHECK_STR(after, before);
    }
    hakmem_option_get("decay", before, sizeof before);
    setenv("HAKMEM_DECAY", "7s", 1); /* the environment is read when the process starts */
    free(malloc(10 << 20));
    hakmem_option_get("decay", after, sizeof after);
    CHECK_STR(after, before);
}

/* mallopt(3): 0 for a value that is wrong, which glibc says of M_MXFAST alone; malloc_info(3):
 * EINVAL; hakmem.h. */
TEST(controls_refuse_what_they_do_not_know)
{
    struct hakmem_stats stats;
    char value[8];
    CHECK_EQ(mallopt(12345, 1), 1);
    CHECK_EQ(mallopt(0, 1), 1);
    CHECK_EQ(mallopt(M_MXFAST, 100000), 0);
    CHECK_EQ(mallopt(M_MMAP_THRESHOLD, 1 << 30), 1);
    CHECK_EQ(malloc_info(1, stderr), EINVAL);
    CHECK_EQ(malloc_info(-1, stderr), EINVAL);
    CHECK_EQ(hakmem_stats_get(&stats, 0), EINVAL);
    CHECK_EQ(hakmem_option_get("foreign", value, 0), ERANGE);
    CHECK_EQ(hakmem_option_get("foreign", value, 6), ERANGE);
    CHECK_EQ(hakmem_option_get("foreign", value, 7), 0);
    CHECK_EQ(hakmem_good_size(SIZE_MAX), 0);
}
