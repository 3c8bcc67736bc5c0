/* SPDX-License-Identifier: MIT */
/* tests/attack/matrix/weakness.cpp - kinds of misuse by their CWE number, in the spirit of NIST's
 * Juliet suite: each row of a table in each of the flows by which its block gets to the misuse.
 *
 * weakness                     prints the cases: CWE, row, flow
 * weakness right BYTES         runs all of them without their misuse
 * weakness CWE ROW FLOW BYTES  runs one with it
 *
 * BYTES is the size of the block, 10 to 800.
 *
 * Exit status 0: the misuse had its way; 1: it read nothing of any block's content; else the
 * allocator or the kernel ended it. tools/weaknesses.py runs them. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { MOST_BYTES = 800 };
static size_t bytes;
static char *stack_room;
static bool read_nothing, misuse_read_nothing;

/* The compiler must not know where it comes from. */
static char *hide(void *block)
{
    char *volatile hidden = static_cast<char *>(block);
    if (hidden == NULL)
        exit(3);
    return hidden;
}

/* A string that fills it. */
static char *fill(void *block)
{
    memset(block, 'x', bytes - 1);
    hide(block)[bytes - 1] = 0;
    return hide(block);
}

/* Full blocks, never freed: the neighbours of what is allocated between two calls. */
static void settle()
{
    for (int i = 0; i < 4; i++)
        memset(hide(malloc(bytes)), 'x', bytes);
}

template <void *allocate()> static char *from()
{
    settle();
    char *block = fill(allocate());
    settle();
    return block;
}

static void *by_malloc()
{
    return malloc(bytes);
}
static void *by_calloc()
{
    return calloc(1, bytes);
}
static void *by_realloc()
{
    return realloc(hide(malloc(bytes * 3)), bytes);
}
static void *by_new()
{
    return operator new(bytes);
}
static void *by_new_array()
{
    return operator new[](bytes);
}

static void *on_the_stack()
{
    return stack_room;
}

static void *in_data()
{
    static char data[MOST_BYTES];
    return data;
}

static void *in_a_mapping()
{
    static char *pages = static_cast<char *>(
        mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return pages + 4096;
}

/* Reads: some of it is a block's content, or none. */
static void look(const char *from, size_t count)
{
    read_nothing = true;
    for (size_t i = 0; i < count; i++)
        if (static_cast<const volatile char *>(from)[i] == 'x')
            read_nothing = false;
}

static void write_loop(char *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        static_cast<volatile char *>(to)[i] = 'y';
}

/* Room for what is copied, and what is copied from. */
static char other[4096];

static const char *text(size_t characters)
{
    memset(other, 'y', characters);
    other[characters] = 0;
    return other;
}

/* To the end of the thread. */
static void run_thread(void *(*work)(void *), void *with)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, with) != 0 || pthread_join(thread, NULL) != 0)
        exit(3);
}

static void free_in_a_thread(char *block)
{
    run_thread(
        [](void *block) -> void * {
            free(block);
            return NULL;
        },
        block);
}

struct weakness {
    int number; /* CWE */
    const char *name;
    char *(*source)();
    void (*sink)(char *block, bool wrong); /* uses the block, wrongly or not, and frees it */
};

/* clang-format off: a row a misuse. */
#define ROW(number, name, source, ...)                                                             \
    {number, name, from<source>, [](char *p, bool wrong) { __VA_ARGS__; }}
static const weakness weaknesses[] = {
    ROW(415, "free_twice", by_malloc, free(p); if (wrong) free(hide(p))),
    ROW(415, "free_twice_of_calloc", by_calloc, free(p); if (wrong) free(hide(p))),
    ROW(415, "delete_twice", by_new, operator delete(p); if (wrong) operator delete(hide(p))),
    ROW(415, "delete_array_twice", by_new_array, operator delete[](p);
        if (wrong) operator delete[](hide(p))),
    ROW(415, "another_free_between", by_malloc, char *q = from<by_malloc>(); free(p); free(q);
        if (wrong) free(hide(p))),
    ROW(415, "free_by_two_threads", by_malloc, free_in_a_thread(p); if (wrong) free(hide(p))),
    ROW(415, "free_by_two_other_threads", by_malloc, free_in_a_thread(p);
        if (wrong) free_in_a_thread(hide(p))),
    ROW(415, "realloc_after_free", by_malloc, free(p);
        if (wrong) fill(realloc(hide(p), bytes * 2))),

    ROW(416, "read", by_malloc, free(p); if (wrong) look(hide(p), bytes)),
    ROW(416, "read_after_delete", by_new, operator delete(p); if (wrong) look(hide(p), bytes)),
    ROW(416, "read_after_delete_array", by_new_array, operator delete[](p);
        if (wrong) look(hide(p), bytes)),
    ROW(416, "read_by_strlen", by_malloc, free(p); if (wrong) look(p, strlen(hide(p)))),
    ROW(416, "write", by_malloc, free(p); if (wrong) write_loop(hide(p), bytes)),
    ROW(416, "write_by_memset", by_malloc, free(p); if (wrong) memset(hide(p), 'y', bytes)),
    ROW(416, "write_after_delete", by_new, operator delete(p);
        if (wrong) write_loop(hide(p), bytes)),
    ROW(416, "write_when_used_again", by_malloc, free(p); settle();
        if (wrong) write_loop(hide(p), bytes)),

    ROW(122, "loop", by_malloc, write_loop(p, wrong ? bytes * 2 : bytes); free(p)),
    ROW(122, "one_index", by_malloc, write_loop(p + bytes - !wrong, 1); free(p)),
    ROW(122, "far_index", by_malloc, write_loop(p + (wrong ? bytes + 40 : 4), 4); free(p)),
    ROW(122, "memcpy", by_malloc, memcpy(p, other, wrong ? bytes * 2 : bytes); free(p)),
    ROW(122, "memmove_to_new", by_new_array, memmove(p, other, wrong ? bytes * 2 : bytes);
        operator delete[](p)),
    ROW(122, "size_of_another_type", by_malloc, memset(p, 'y', wrong ? bytes * sizeof(int) : bytes);
        free(p)),
    ROW(122, "strcpy", by_malloc, strcpy(p, text(wrong ? bytes + 20 : bytes - 1)); free(p)),
    ROW(122, "no_room_for_the_nul", by_malloc, strcpy(p, text(wrong ? bytes : bytes - 1)); free(p)),
    ROW(122, "strncat", by_malloc, strncat(p, text(bytes), wrong ? bytes : 0); free(p)),
    ROW(122, "snprintf", by_malloc, snprintf(p, wrong ? bytes * 2 : bytes, "%s", text(bytes * 2));
        free(p)),

    ROW(124, "loop", by_malloc, write_loop(p - (wrong ? 8 : 0), bytes); free(p)),
    ROW(124, "one_index", by_malloc, write_loop(p - wrong, 1); free(p)),
    ROW(124, "far_index", by_malloc, write_loop(p - (wrong ? 20 : 0), 4); free(p)),
    ROW(124, "memcpy", by_malloc, memcpy(p - (wrong ? 8 : 0), other, bytes); free(p)),
    ROW(124, "memmove_to_new", by_new_array, memmove(p - (wrong ? 8 : 0), other, bytes);
        operator delete[](p)),
    ROW(124, "strcpy", by_malloc, strcpy(p - (wrong ? 8 : 0), text(bytes - 1)); free(p)),

    ROW(126, "loop", by_malloc, look(p + (wrong ? bytes : 0), bytes); free(p)),
    ROW(126, "one_index", by_malloc, look(p + bytes - !wrong, 1); free(p)),
    ROW(126, "far_index", by_malloc, look(p + (wrong ? bytes + 40 : 4), 4); free(p)),
    ROW(126, "memcpy", by_malloc, memcpy(other, p, wrong ? bytes * 2 : bytes);
        look(other + bytes, bytes); free(p)),
    ROW(126, "memmove_from_new", by_new_array, memmove(other, p, wrong ? bytes * 2 : bytes);
        look(other + bytes, bytes); operator delete[](p)),
    ROW(126, "strlen_without_nul", by_malloc, if (wrong) memset(p, 'z', bytes); look(p, strlen(p));
        free(p)),

    ROW(127, "loop", by_malloc, look(p - (wrong ? 8 : 0), 8); free(p)),
    ROW(127, "one_index", by_malloc, look(p - wrong, 1); free(p)),
    ROW(127, "far_index", by_malloc, look(p - (wrong ? bytes + 20 : 0), 4); free(p)),
    ROW(127, "memcpy", by_malloc, memcpy(other, p - (wrong ? 8 : 0), bytes); look(other, 8);
        free(p)),
    ROW(127, "memmove_from_new", by_new_array, memmove(other, p - (wrong ? 8 : 0), bytes);
        look(other, 8); operator delete[](p)),

    ROW(590, "free_of_the_stack", on_the_stack, if (wrong) free(p)),
    ROW(590, "delete_of_the_stack", on_the_stack, if (wrong) operator delete(p)),
    ROW(590, "delete_array_of_the_stack", on_the_stack, if (wrong) operator delete[](p)),
    ROW(590, "free_of_data", in_data, if (wrong) free(p)),
    ROW(590, "delete_of_data", in_data, if (wrong) operator delete(p)),
    ROW(590, "delete_array_of_data", in_data, if (wrong) operator delete[](p)),
    ROW(590, "free_of_a_mapping", in_a_mapping, if (wrong) free(p)),
    ROW(590, "realloc_of_the_stack", on_the_stack, if (wrong) fill(realloc(p, bytes * 2))),

    ROW(761, "free_behind_one", by_malloc, free(p + wrong)),
    ROW(761, "free_behind_eight", by_malloc, free(p + (wrong ? 8 : 0))),
    ROW(761, "free_of_the_middle", by_malloc, free(p + (wrong ? bytes / 2 : 0))),
    ROW(761, "free_of_the_string's_end", by_malloc, free(wrong ? strchr(p, 0) : p)),
    ROW(761, "delete_behind_eight", by_new, operator delete(p + (wrong ? 8 : 0))),
    ROW(761, "realloc_behind_eight", by_malloc, free(realloc(p + (wrong ? 8 : 0), bytes * 2))),

    ROW(762, "malloc_delete", by_malloc, wrong ? operator delete(p) : free(p)),
    ROW(762, "malloc_delete_array", by_malloc, wrong ? operator delete[](p) : free(p)),
    ROW(762, "calloc_delete", by_calloc, wrong ? operator delete(p) : free(p)),
    ROW(762, "realloc_delete_array", by_realloc, wrong ? operator delete[](p) : free(p)),
    ROW(762, "new_free", by_new, wrong ? free(p) : operator delete(p)),
    ROW(762, "new_array_free", by_new_array, wrong ? free(p) : operator delete[](p)),
    ROW(762, "new_delete_array", by_new, wrong ? operator delete[](p) : operator delete(p)),
    ROW(762, "new_array_delete", by_new_array, wrong ? operator delete(p) : operator delete[](p)),
};
/* clang-format on */

/* A block on its way to the misuse. */
struct passage {
    const weakness *what;
    char *block;
    bool wrong;
};
static passage global;

static void use(passage one)
{
    one.what->sink(hide(one.block), one.wrong);
    if (one.wrong)
        misuse_read_nothing = read_nothing;
}

static void direct(const weakness &what, bool wrong)
{
    use({&what, what.source(), wrong});
}

static void function(const weakness &what, bool wrong)
{
    void (*volatile called)(passage) = use;
    called({&what, what.source(), wrong});
}

static void structure(const weakness &what, bool wrong)
{
    passage one = {&what, what.source(), wrong};
    passage *volatile copied = new passage(one);
    use(*copied);
    delete copied;
}

static void loop(const weakness &what, bool wrong)
{
    for (int i = 0; i < 10; i++)
        use({&what, what.source(), wrong && i == 6});
}

static void array(const weakness &what, bool wrong)
{
    char *blocks[10];
    for (char *&block : blocks)
        block = what.source();
    for (int i = 0; i < 10; i++)
        use({&what, blocks[i], wrong && i == 3});
}

static void by_global(const weakness &what, bool wrong)
{
    global = {&what, what.source(), wrong};
    void (*volatile called)() = [] { use(global); };
    called();
}

static void in_a_thread(const weakness &what, bool wrong)
{
    passage one = {&what, what.source(), wrong};
    run_thread(
        [](void *one) -> void * {
            use(*static_cast<passage *>(one));
            return NULL;
        },
        &one);
}

static void from_a_thread(const weakness &what, bool wrong)
{
    passage one = {&what, NULL, wrong};
    run_thread(
        [](void *one) -> void * {
            static_cast<passage *>(one)->block = static_cast<passage *>(one)->what->source();
            return NULL;
        },
        &one);
    use(one);
}

static const struct flow {
    const char *name;
    void (*run)(const weakness &, bool);
} flows[] = {{"direct", direct},
             {"function", function},
             {"structure", structure},
             {"loop", loop},
             {"array", array},
             {"global", by_global},
             {"in_a_thread", in_a_thread},
             {"from_a_thread", from_a_thread}};

/* What is found out late is found out here. */
static void go_on()
{
    static void *kept[2000];
    for (int round = 0; round < 4; round++) {
        for (void *&block : kept)
            block = hide(malloc(bytes));
        for (void *block : kept)
            free(block);
    }
}

template <typename Function> static void each_case(Function act)
{
    for (const weakness &what : weaknesses)
        for (const flow &way : flows)
            act(what, way);
}

int main(int argument_count, char **arguments)
{
    alignas(16) char room[MOST_BYTES];
    stack_room = hide(room);
    memset(other, 'y', sizeof other);
    rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    bytes = argument_count < 2 ? 0 : strtoul(arguments[argument_count - 1], NULL, 10);
    if (argument_count < 2)
        each_case([](const weakness &what, const flow &way) {
            printf("%d %s %s\n", what.number, what.name, way.name);
        });
    else if (argument_count < 5)
        each_case([](const weakness &what, const flow &way) {
            way.run(what, false);
            printf("%d %s %s\n", what.number, what.name, way.name);
        });
    else
        each_case([arguments](const weakness &what, const flow &way) {
            if (atoi(arguments[1]) != what.number || strcmp(arguments[2], what.name) != 0 ||
                strcmp(arguments[3], way.name) != 0)
                return;
            way.run(what, true);
            go_on();
            exit(misuse_read_nothing);
        });
}
