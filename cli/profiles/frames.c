/* SPDX-License-Identifier: MIT */
#include "profiles/model.h"
#include "profiles/perf_map.h"

#include <string.h>

uint32_t stack_frames(const struct profile *profile, struct stack stack, struct frame *frames)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stack.depth; i++) {
        const struct location *at = &profile->locations[profile->frames[stack.first_frame + i]];
        for (uint32_t line = 0; line < at->line_count && count < FRAMES_MOST; line++) {
            const struct line *from = &profile->lines[at->first_line + line];
            frames[count++] = (struct frame){.function = from->function,
                                             .file = from->file,
                                             .number = from->number,
                                             .module = profile->modules[at->module].path,
                                             .address = at->address,
                                             .is_inlined = line + 1 < at->line_count};
        }
    }
    return count;
}

static bool begins_with_any(const char *text, const char *const *beginnings)
{
    for (; *beginnings != NULL; beginnings++)
        if (strncmp(text, *beginnings, strlen(*beginnings)) == 0)
            return true;
    return false;
}

static bool is_any(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

/* Functions that hand out memory or take it back, of whatever allocator; their callers are of
 * interest. */
static bool is_allocator(const char *function, const char *module)
{
    static const char *const functions[] = {"free",
                                            "cfree",
                                            "free_anything",
                                            "malloc",
                                            "calloc",
                                            "realloc",
                                            "reallocarray",
                                            "memalign",
                                            "valloc",
                                            "pvalloc",
                                            "aligned_alloc",
                                            "posix_memalign",
                                            "strdup",
                                            "strndup",
                                            "asprintf",
                                            "vasprintf",
                                            "xmalloc",
                                            "xcalloc",
                                            "xrealloc",
                                            "xstrdup",
                                            "g_malloc",
                                            "g_malloc0",
                                            "g_realloc",
                                            "g_strdup",
                                            "g_slice_alloc",
                                            "PyMem_Malloc",
                                            "PyMem_RawMalloc",
                                            "PyMem_Realloc",
                                            "PyObject_Malloc",
                                            "PyObject_Realloc",
                                            NULL};
    static const char *const beginnings[] = {"operator new",
                                             "operator delete",
                                             "hak_",
                                             "__libc_",
                                             "__interceptor_",
                                             "je_",
                                             "tc_",
                                             "mi_",
                                             "hakmem_",
                                             "imalloc",
                                             "prof_",
                                             "fallback_impl",
                                             "__rust_",
                                             "__rdl_",
                                             "zmalloc",
                                             "zcalloc",
                                             "zrealloc",
                                             "ztry",
                                             "CRYPTO_",
                                             NULL};
    static const char *const modules[] = {"libjemalloc", "libtcmalloc", "libhakmem", "libmimalloc",
                                          NULL};
    return is_any(function, functions) || begins_with_any(function, beginnings) ||
           begins_with_any(base_name(module), modules);
}

/* Containers of C++'s and Rust's libraries: they allocate for the code that uses them. */
static bool is_container(const char *function)
{
    static const char *const beginnings[] = {
        "std::",       "void std::",   "bool std::",  "__gnu_cxx::", "boost::container",
        "alloc::",     "<alloc::",     "core::",      "<core::",     "<std::",
        "hashbrown::", "<hashbrown::", "<T as alloc", "<T as core",  "<I as core",
        NULL};
    return begins_with_any(function, beginnings);
}

/* The innermost function of Python: what its interpreter and libraries allocate is for that. */
static uint32_t find_python(const struct profile *profile, const struct frame *frames,
                            uint32_t count)
{
    uint32_t at = 0;
    while (at < count && !is_python_name(profile_text(profile, frames[at].function)))
        at++;
    return at;
}

uint32_t site_origin(const struct profile *profile, const struct frame *frames, uint32_t count)
{
    uint32_t python = find_python(profile, frames, count);
    if (python < count)
        return python;
    uint32_t innermost = 0;
    while (innermost < count && is_allocator(profile_text(profile, frames[innermost].function),
                                             profile_text(profile, frames[innermost].module)))
        innermost++;
    uint32_t origin = innermost;
    while (origin < count && is_container(profile_text(profile, frames[origin].function)))
        origin++;
    return origin < count ? origin : innermost < count ? innermost : 0;
}
