/* SPDX-License-Identifier: MIT */
extern "C" {
#include "api/api.h"
}

/* The one place that needs C++: C cannot catch. The C++ runtime is asked for weakly, so that
 * programs without it have none: nobody can throw there, and the unwinder takes the missing
 * personality for a frame with nothing to do. */
__asm__(".weak __gxx_personality_v0\n"
        ".weak __cxa_begin_catch\n"
        ".weak __cxa_end_catch");

extern "C" void *hak_catch(void *(*take)(size_t, size_t), size_t bytes, size_t alignment)
{
    try {
        return take(bytes, alignment);
    } catch (...) {
        return nullptr;
    }
}
