/* SPDX-License-Identifier: MIT */
#include "policy/policy_table.h"

struct policy_table hak_policy = {
#define X(name, initial, least, most, meaning) .name = (initial),
    HAK_POLICY_TABLE(X)
#undef X
};

#define X(name, initial, least, most, meaning)                                                     \
    hak_static_assert((uint64_t)(initial) >= (uint64_t)(least) &&                                  \
                          (uint64_t)(initial) <= (uint64_t)(most),                                 \
                      #name " starts within its clamps");
HAK_POLICY_TABLE(X)
#undef X
