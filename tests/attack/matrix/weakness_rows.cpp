/* SPDX-License-Identifier: MIT */
/* tests/attack/matrix/weakness_rows.cpp - where blocks come from, and how they are misused. */
#include "weakness.hpp"

#include <cstdio>
#include <cstring>
#include <cwchar>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };
size_t bytes;
char *stack_room;
bool in_vain;

/* A string that fills it. */
static char *fill(void *block)
{
    memset(block, 'x', bytes - 1);
    hide(block)[bytes - 1] = 0;
    return hide(block);
}

static char *settlers[512];
static int settler_count;

/* Full blocks: the neighbours of what is allocated between two calls. */
static void settle()
{
    for (int i = 0; i < (bytes == MOST_BYTES ? 1 : 4); i++) {
        char *block = hide(malloc(bytes));
        memset(block, 'x', bytes);
        if (settler_count == sizeof settlers / sizeof *settlers)
            exit(3);
        settlers[settler_count++] = block;
    }
}

void free_settlers()
{
    while (settler_count > 0)
        free(settlers[--settler_count]);
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
static void *by_strdup()
{
    char *text = hide(malloc(bytes)), *copy = strdup(fill(text));
    free(text);
    return copy;
}
static void *by_posix_memalign()
{
    void *block = NULL;
    return posix_memalign(&block, 64, bytes) == 0 ? block : NULL;
}
static void *by_aligned_new()
{
    return operator new(bytes, std::align_val_t(64));
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

static void *in_data_of_the_thread()
{
    static thread_local char data[MOST_BYTES];
    return data;
}

static void *in_a_mapping()
{
    static char *pages = static_cast<char *>(mmap(
        NULL, MOST_BYTES + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return pages + PAGE;
}

/* Reads: some of it is a block's content, or none. */
static void look(const char *from, size_t count)
{
    in_vain = true;
    for (size_t i = 0; i < count; i++)
        if (static_cast<const volatile char *>(from)[i] == 'x')
            in_vain = false;
}

static void write_loop(char *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        static_cast<volatile char *>(to)[i] = 'y';
}

/* Room for what is copied, and what is copied from. */
static char other[2 * MOST_BYTES + PAGE];

void begin(size_t block_bytes, char *room)
{
    bytes = block_bytes;
    stack_room = hide(room);
    memset(other, 'y', sizeof other);
}

static const char *text(size_t characters)
{
    memset(other, 'y', characters);
    other[characters] = 0;
    return other;
}

/* Of this size, not more, with the NUL. */
static const wchar_t *wide_text(size_t size)
{
    wchar_t *characters = reinterpret_cast<wchar_t *>(other);
    wmemset(characters, L'y', size / sizeof(wchar_t) - 1);
    characters[size / sizeof(wchar_t) - 1] = 0;
    return characters;
}
static wchar_t *wide(char *block)
{
    return reinterpret_cast<wchar_t *>(block);
}

/* The kernel does not fault at a guard page: it refuses. */
static void from_file(char *to, size_t count)
{
    static int file = [] {
        int made = memfd_create("other", 0);
        return made >= 0 && write(made, other, sizeof other) == sizeof other ? made : (exit(3), -1);
    }();
    in_vain = pread(file, to, count, 0) != static_cast<ssize_t>(count);
}
static void to_file(const char *from, size_t count, size_t first)
{
    static int file = memfd_create("file", 0);
    ssize_t written = pwrite(file, from, count, 0);
    ssize_t got = written < 0 ? 0 : pread(file, other, written, 0);
    look(other + first, got > static_cast<ssize_t>(first) ? got - first : 0);
}

/* A block that begins with its length and a pointer. */
struct node {
    node *next;
    char last[2];
};
static node *as_node(char *block)
{
    return reinterpret_cast<node *>(block);
}

/* The old pointer, where it is wrong to use it: the block has moved. */
static char *outgrown(char *block, bool wrong)
{
    char *grown = hide(realloc(hide(block), bytes * 5));
    in_vain = grown == block;
    if (!wrong)
        free(grown);
    return wrong && !in_vain ? hide(block) : NULL;
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

/* clang-format off: a row a misuse. */
#define ROW(number, name, source, ...)                                                             \
    {number, name, from<source>, [](char *p, bool wrong) { __VA_ARGS__; }}
const weakness weaknesses[] = {
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
    ROW(415, "free_after_realloc", by_malloc, free(hide(realloc(hide(p), bytes * 5)));
        if (wrong) free(hide(p))),
    ROW(415, "free_after_realloc_to_nothing", by_malloc, free(realloc(hide(p), 0));
        if (wrong) free(hide(p))),
    ROW(
        415, "two_members", by_malloc, struct { char *one, *two; } owner = {p, wrong ? p : NULL};
        free(hide(owner.one)); free(owner.two)),
    ROW(415, "aligned_twice", by_posix_memalign, free(p); if (wrong) free(hide(p))),
    ROW(415, "delete_then_free", by_new, operator delete(p); if (wrong) free(hide(p))),
    ROW(415, "delete_array_then_delete", by_new_array, operator delete[](p);
        if (wrong) operator delete(hide(p))),

    ROW(416, "read", by_malloc, free(p); if (wrong) look(hide(p), bytes)),
    ROW(416, "read_after_delete", by_new, operator delete(p); if (wrong) look(hide(p), bytes)),
    ROW(416, "read_after_delete_array", by_new_array, operator delete[](p);
        if (wrong) look(hide(p), bytes)),
    ROW(416, "read_by_strlen", by_malloc, free(p); if (wrong) look(p, strlen(hide(p)))),
    ROW(
        416, "read_by_memcpy", by_malloc, free(p); if (wrong) {
            memcpy(other, hide(p), bytes);
            look(other, bytes);
        }),
    ROW(416, "read_by_snprintf", by_malloc, free(p);
        if (wrong) look(other, snprintf(other, sizeof other, "%s", hide(p)))),
    ROW(416, "read_by_the_kernel", by_malloc, free(p); if (wrong) to_file(hide(p), bytes, 0)),
    ROW(416, "read_of_a_member", by_malloc, char *q = from<by_malloc>();
        as_node(p)->next = as_node(q); free(p);
        if (wrong) q = reinterpret_cast<char *>(as_node(hide(p))->next); in_vain = q == NULL;
        free(q)),
    ROW(416, "read_after_realloc", by_malloc, if (char *old = outgrown(p, wrong)) look(old, bytes)),
    ROW(416, "write", by_malloc, free(p); if (wrong) write_loop(hide(p), bytes)),
    ROW(416, "write_by_memset", by_malloc, free(p); if (wrong) memset(hide(p), 'y', bytes)),
    ROW(416, "write_by_memcpy", by_malloc, free(p); if (wrong) memcpy(hide(p), other, bytes)),
    ROW(416, "write_by_snprintf", by_malloc, free(p);
        if (wrong) snprintf(hide(p), bytes, "%s", text(bytes))),
    ROW(416, "write_by_wmemset", by_malloc, free(p);
        if (wrong) wmemset(wide(hide(p)), L'y', bytes / sizeof(wchar_t))),
    ROW(416, "write_by_the_kernel", by_malloc, free(p); if (wrong) from_file(hide(p), bytes)),
    ROW(416, "write_of_a_member", by_malloc, free(p);
        if (wrong) as_node(hide(p))->next = as_node(other)),
    ROW(416, "write_of_one_byte", by_malloc, free(p); if (wrong) write_loop(hide(p) + 1, 1)),
    ROW(416, "write_after_realloc", by_malloc,
        if (char *old = outgrown(p, wrong)) write_loop(old, bytes)),
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
    ROW(122, "sprintf", by_malloc, sprintf(p, "%s", text(wrong ? bytes * 2 : bytes - 1)); free(p)),
    ROW(122, "wmemset", by_malloc,
        wmemset(wide(p), L'y', (wrong ? bytes * 2 + 16 : bytes) / sizeof(wchar_t));
        free(p)),
    ROW(122, "wcscpy", by_malloc, wcscpy(wide(p), wide_text(wrong ? bytes * 2 + 16 : bytes));
        free(p)),
    ROW(122, "by_the_kernel", by_malloc, from_file(p, wrong ? bytes * 2 : bytes); free(p)),
    ROW(122, "size_of_the_whole_for_a_member", by_malloc,
        memset(as_node(p)->last, 'y', wrong ? bytes : bytes - sizeof(node *));
        free(p)),
    ROW(122, "second_index", by_malloc, write_loop(p + (wrong ? bytes + 1 : 1), 1); free(p)),
    ROW(122, "index_a_page_behind", by_malloc, write_loop(p + (wrong ? bytes + PAGE : 1), 1);
        free(p)),
    ROW(122, "shrunk_by_realloc", by_malloc, char *q = hide(realloc(p, bytes / 2));
        write_loop(q, wrong ? bytes : bytes / 2); free(q)),
    ROW(122, "grown_by_realloc", by_malloc, char *q = hide(realloc(p, bytes * 2));
        write_loop(q, wrong ? bytes * 4 : bytes * 2); free(q)),
    ROW(122, "aligned", by_posix_memalign, memset(p, 'y', wrong ? bytes * 2 + 64 : bytes); free(p)),

    ROW(124, "loop", by_malloc, write_loop(p - (wrong ? 8 : 0), bytes); free(p)),
    ROW(124, "one_index", by_malloc, write_loop(p - wrong, 1); free(p)),
    ROW(124, "far_index", by_malloc, write_loop(p - (wrong ? 20 : 0), 4); free(p)),
    ROW(124, "memcpy", by_malloc, memcpy(p - (wrong ? 8 : 0), other, bytes); free(p)),
    ROW(124, "memmove_to_new", by_new_array, memmove(p - (wrong ? 8 : 0), other, bytes);
        operator delete[](p)),
    ROW(124, "strcpy", by_malloc, strcpy(p - (wrong ? 8 : 0), text(bytes - 1)); free(p)),
    ROW(124, "sprintf", by_malloc, sprintf(p - (wrong ? 8 : 0), "%s", text(bytes - 1)); free(p)),
    ROW(124, "wmemset", by_malloc,
        wmemset(wide(p - (wrong ? 8 : 0)), L'y', bytes / sizeof(wchar_t));
        free(p)),
    ROW(124, "by_the_kernel", by_malloc, from_file(p - (wrong ? 8 : 0), bytes); free(p)),
    ROW(124, "member_before", by_malloc, as_node(p - (wrong ? 8 : 0))->next = as_node(other);
        free(p)),
    ROW(124, "second_index", by_malloc, write_loop(p - (wrong ? 2 : 0), 1); free(p)),
    ROW(124, "index_a_page_before", by_malloc, write_loop(p - (wrong ? PAGE : 0), 1); free(p)),
    ROW(124, "grown_by_realloc", by_malloc, char *q = hide(realloc(p, bytes * 5));
        write_loop(q - wrong, 1); free(q)),
    ROW(124, "aligned", by_posix_memalign, write_loop(p - (wrong ? 8 : 0), 8); free(p)),

    ROW(126, "loop", by_malloc, look(p + (wrong ? bytes : 0), bytes); free(p)),
    ROW(126, "one_index", by_malloc, look(p + bytes - !wrong, 1); free(p)),
    ROW(126, "far_index", by_malloc, look(p + (wrong ? bytes + 40 : 4), 4); free(p)),
    ROW(126, "memcpy", by_malloc, memcpy(other, p, wrong ? bytes * 2 : bytes);
        look(other + bytes, bytes); free(p)),
    ROW(126, "memmove_from_new", by_new_array, memmove(other, p, wrong ? bytes * 2 : bytes);
        look(other + bytes, bytes); operator delete[](p)),
    ROW(126, "strlen_without_nul", by_malloc, if (wrong) memset(p, 'z', bytes); look(p, strlen(p));
        free(p)),
    ROW(126, "snprintf_without_nul", by_malloc, if (wrong) memset(p, 'z', bytes);
        look(other, snprintf(other, sizeof other, "%s", p)); free(p)),
    ROW(126, "wmemcpy", by_malloc,
        wmemcpy(wide(other), wide(p), (wrong ? bytes * 2 + 16 : bytes) / sizeof(wchar_t));
        look(other + bytes, bytes); free(p)),
    ROW(126, "by_the_kernel", by_malloc, to_file(p, wrong ? bytes * 2 : bytes, bytes); free(p)),
    ROW(126, "size_of_the_whole_for_a_member", by_malloc,
        memcpy(other, as_node(p)->last, wrong ? bytes : bytes - sizeof(node *));
        look(other + bytes - sizeof(node *), sizeof(node *)); free(p)),
    ROW(126, "second_index", by_malloc, look(p + (wrong ? bytes + 1 : 1), 1); free(p)),
    ROW(126, "index_a_page_behind", by_malloc, look(p + (wrong ? bytes + PAGE : 1), 1); free(p)),
    ROW(126, "shrunk_by_realloc", by_malloc, char *q = hide(realloc(p, bytes / 2));
        look(q + (wrong ? bytes / 2 : 0), bytes / 2); free(q)),
    ROW(126, "grown_by_realloc", by_malloc, char *q = hide(realloc(p, bytes * 2));
        look(q + (wrong ? bytes * 2 : 0), bytes); free(q)),
    ROW(126, "aligned", by_posix_memalign, look(p + (wrong ? bytes : 0), bytes + 64 * wrong);
        free(p)),

    ROW(127, "loop", by_malloc, look(p - (wrong ? 8 : 0), 8); free(p)),
    ROW(127, "one_index", by_malloc, look(p - wrong, 1); free(p)),
    ROW(127, "far_index", by_malloc, look(p - (wrong ? bytes + 20 : 0), 4); free(p)),
    ROW(127, "memcpy", by_malloc, memcpy(other, p - (wrong ? 8 : 0), bytes); look(other, 8);
        free(p)),
    ROW(127, "memmove_from_new", by_new_array, memmove(other, p - (wrong ? 8 : 0), bytes);
        look(other, 8); operator delete[](p)),
    ROW(127, "snprintf", by_malloc, snprintf(other, sizeof other, "%s", p - (wrong ? 8 : 0));
        look(other, 8); free(p)),
    ROW(127, "wmemcpy", by_malloc,
        wmemcpy(wide(other), wide(p - (wrong ? 8 : 0)), bytes / sizeof(wchar_t));
        look(other, 8); free(p)),
    ROW(127, "by_the_kernel", by_malloc, to_file(p - (wrong ? 8 : 0), 8, 0); free(p)),
    ROW(127, "second_index", by_malloc, look(p - (wrong ? 2 : 0), 1); free(p)),
    ROW(127, "index_a_page_before", by_malloc, look(p - (wrong ? PAGE : 0), 1); free(p)),
    ROW(127, "grown_by_realloc", by_malloc, char *q = hide(realloc(p, bytes * 5));
        look(q - wrong, 1); free(q)),
    ROW(127, "aligned", by_posix_memalign, look(p - (wrong ? 8 : 0), 8); free(p)),

    ROW(590, "free_of_the_stack", on_the_stack, if (wrong) free(p)),
    ROW(590, "delete_of_the_stack", on_the_stack, if (wrong) operator delete(p)),
    ROW(590, "delete_array_of_the_stack", on_the_stack, if (wrong) operator delete[](p)),
    ROW(590, "free_of_data", in_data, if (wrong) free(p)),
    ROW(590, "delete_of_data", in_data, if (wrong) operator delete(p)),
    ROW(590, "delete_array_of_data", in_data, if (wrong) operator delete[](p)),
    ROW(590, "free_of_a_mapping", in_a_mapping, if (wrong) free(p)),
    ROW(590, "realloc_of_the_stack", on_the_stack, if (wrong) fill(realloc(p, bytes * 2))),
    ROW(590, "realloc_of_data", in_data, if (wrong) fill(realloc(p, bytes * 2))),
    ROW(590, "free_behind_one_of_data", in_data, if (wrong) free(p + 1)),
    ROW(590, "free_of_data_of_the_thread", in_data_of_the_thread, if (wrong) free(p)),
    ROW(590, "free_of_a_literal", in_data, if (wrong) free(hide(const_cast<char *>("literal")))),
    ROW(590, "free_of_code", in_data, if (wrong) free(hide(reinterpret_cast<void *>(write_loop)))),
    ROW(590, "free_of_the_environment", in_data, if (wrong) free(hide(environ[0]))),
    ROW(590, "delete_of_a_mapping", in_a_mapping, if (wrong) operator delete(p)),

    ROW(761, "free_behind_one", by_malloc, free(p + wrong)),
    ROW(761, "free_behind_eight", by_malloc, free(p + (wrong ? 8 : 0))),
    ROW(761, "free_of_the_middle", by_malloc, free(p + (wrong ? bytes / 2 : 0))),
    ROW(761, "free_of_the_string's_end", by_malloc, free(wrong ? strchr(p, 0) : p)),
    ROW(761, "delete_behind_eight", by_new, operator delete(p + (wrong ? 8 : 0))),
    ROW(761, "realloc_behind_eight", by_malloc, free(realloc(p + (wrong ? 8 : 0), bytes * 2))),
    ROW(761, "realloc_behind_one", by_malloc, free(realloc(p + wrong, bytes * 2))),
    ROW(761, "free_before_eight", by_malloc, free(p - (wrong ? 8 : 0))),
    ROW(761, "free_behind_eight_of_grown", by_malloc, char *q = hide(realloc(p, bytes * 5));
        free(q + (wrong ? 8 : 0))),
    ROW(761, "free_behind_eight_of_aligned", by_posix_memalign, free(p + (wrong ? 8 : 0))),
    ROW(761, "delete_array_behind_eight", by_new_array, operator delete[](p + (wrong ? 8 : 0))),

    ROW(762, "malloc_delete", by_malloc, wrong ? operator delete(p) : free(p)),
    ROW(762, "malloc_delete_array", by_malloc, wrong ? operator delete[](p) : free(p)),
    ROW(762, "calloc_delete", by_calloc, wrong ? operator delete(p) : free(p)),
    ROW(762, "realloc_delete_array", by_realloc, wrong ? operator delete[](p) : free(p)),
    ROW(762, "new_free", by_new, wrong ? free(p) : operator delete(p)),
    ROW(762, "new_array_free", by_new_array, wrong ? free(p) : operator delete[](p)),
    ROW(762, "new_delete_array", by_new, wrong ? operator delete[](p) : operator delete(p)),
    ROW(762, "new_array_delete", by_new_array, wrong ? operator delete(p) : operator delete[](p)),
    ROW(762, "realloc_delete", by_realloc, wrong ? operator delete(p) : free(p)),
    ROW(762, "strdup_delete", by_strdup, wrong ? operator delete(p) : free(p)),
    ROW(762, "aligned_delete", by_posix_memalign, wrong ? operator delete(p) : free(p)),
    ROW(762, "new_realloc", by_new, wrong ? free(realloc(p, bytes * 2)) : operator delete(p)),
    ROW(762, "new_array_realloc", by_new_array,
        wrong ? free(realloc(p, bytes * 2)) : operator delete[](p)),
    ROW(762, "aligned_new_free", by_aligned_new,
        wrong ? free(p) : operator delete(p, std::align_val_t(64))),
};
/* clang-format on */
const size_t weakness_count = sizeof weaknesses / sizeof *weaknesses;
