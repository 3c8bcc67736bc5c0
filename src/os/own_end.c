/* SPDX-License-Identifier: MIT */
#include "os/own_code.h"

__attribute__((section(".text.hak_own_end"))) void hak_own_end(void)
{
}
