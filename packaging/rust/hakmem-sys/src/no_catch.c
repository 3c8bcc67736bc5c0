/* SPDX-License-Identifier: MIT */
#include "api/api.h"

/* In place of src/api/catch.cpp, so that no C++ compiler is needed: without the feature `override`
 * there is no operator new, and nobody throws. */
void *hak_catch(void *(*take)(size_t, size_t), size_t bytes, size_t alignment)
{
    return take(bytes, alignment);
}
