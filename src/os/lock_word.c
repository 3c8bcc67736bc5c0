/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/lock_word.h"

#include "os/confine.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

HAK_TLS uint32_t hak_word_own;
HAK_TLS uint32_t hak_word_former;

/* 0: the kernel may not be asked. */
static uint32_t ask_id(void)
{
    int saved = errno;
    long id = 0;
    if (hak_os_ask_begin()) {
        id = syscall(SYS_gettid);
        hak_os_ask_end();
    }
    errno = saved;
    return id > 0 && id < (long)HAK_WORD_NO_ID ? (uint32_t)id : 0;
}

uint32_t hak_word_find(void)
{
    hak_word_own = hak_word_of((uintptr_t)&hak_word_own);
    return hak_word_own;
}

void hak_word_name_thread(void)
{
    uint32_t id = ask_id();
    if (id != 0)
        hak_word_own = id;
}

void hak_word_begin_copy(void)
{
    hak_word_former = hak_word_own;
    hak_word_name_thread();
}

void hak_word_end_copy(void)
{
    hak_word_former = 0;
}
