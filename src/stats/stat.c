/* SPDX-License-Identifier: MIT */
#include "stats/stat.h"

struct stat_globals hak_stat_globals;
struct stat_block hak_stat_cacheless;
