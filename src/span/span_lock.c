/* SPDX-License-Identifier: MIT */
#include "span/span_lock.h"

struct hak_lock hak_span_lock_word = HAK_LOCK_START_WITH(HAK_LOCK_SPAN);
