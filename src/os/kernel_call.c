/* SPDX-License-Identifier: MIT */
#include "os/kernel_call.h"

#include "base/compiler.h"

#include <errno.h>

#if HAK_INTERPOSE

HAK_NOINLINE long hak_kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
#if defined(__x86_64__)
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long name __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(first)
                     : "r"(name), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    result = first;
#elif defined(__riscv)
    register long name __asm__("a7") = number;
    register long first __asm__("a0") = a;
    register long second __asm__("a1") = b;
    register long third __asm__("a2") = c;
    register long fourth __asm__("a3") = d;
    register long fifth __asm__("a4") = e;
    register long sixth __asm__("a5") = f;
    __asm__ volatile("ecall"
                     : "+r"(first)
                     : "r"(name), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    result = first;
#else
#error "no system call instruction is known for this processor"
#endif
    if ((unsigned long)result <= -4096ul)
        return result;
    errno = (int)-result;
    return -1;
}

#endif
