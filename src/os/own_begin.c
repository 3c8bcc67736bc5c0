/* SPDX-License-Identifier: MIT */
#include "os/own_code.h"

__attribute__((section(".text"))) void hak_own_begin(void)
{
}
