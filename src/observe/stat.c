/* SPDX-License-Identifier: MIT */
#include "observe/stat.h"

struct stat_globals hak_stat_globals;
