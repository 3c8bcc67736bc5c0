/* SPDX-License-Identifier: MIT */
#include "stats/counters.h"

struct stat_globals hak_stat_globals;
struct stat_block hak_stat_cacheless;
