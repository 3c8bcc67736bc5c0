/* SPDX-License-Identifier: MIT */
#include "profiles/formats.h"

bool pprof_read(struct profile *profile, const void *bytes, size_t byte_count)
{
    (void)bytes;
    (void)byte_count;
    return profile_refuse(profile, "is not known to this hakmem, built without protobuf-c");
}

bool pprof_write(struct profile *profile, FILE *to)
{
    (void)to;
    return profile_refuse(profile, "cannot be written: hakmem was built without protobuf-c");
}
