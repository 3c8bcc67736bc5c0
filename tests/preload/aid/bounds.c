/* SPDX-License-Identifier: MIT */
/* bounds CASE BYTES [OFFSET]: writes, or reads, so many bytes more than fit behind the offset of a
 * block by the function that CASE names; 0: exactly what fits. Says "went on" if nothing stops it.
 * Without arguments it lists the cases. "freed CASE" and "before CASE" write or read 8 bytes of a
 * freed block, and from the byte before a block on. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t known);
void *__memmove_chk(void *to, const void *from, size_t bytes, size_t known);
void *__mempcpy_chk(void *to, const void *from, size_t bytes, size_t known);
void *__memset_chk(void *to, int value, size_t bytes, size_t known);
char *__strcpy_chk(char *to, const char *from, size_t known);
char *__stpcpy_chk(char *to, const char *from, size_t known);
char *__strcat_chk(char *to, const char *from, size_t known);
char *__strncpy_chk(char *to, const char *from, size_t bytes, size_t known);
char *__strncat_chk(char *to, const char *from, size_t bytes, size_t known);
int __sprintf_chk(char *to, int flag, size_t known, const char *format, ...);
int __snprintf_chk(char *to, size_t bytes, int flag, size_t known, const char *format, ...);
int __vsprintf_chk(char *to, int flag, size_t known, const char *format, va_list values);
int __vsnprintf_chk(char *to, size_t bytes, int flag, size_t known, const char *format,
                    va_list values);
char *__fgets_chk(char *to, size_t known, int bytes, FILE *file);
size_t __fread_chk(void *to, size_t known, size_t bytes, size_t count, FILE *file);
ssize_t __read_chk(int fd, void *to, size_t bytes, size_t known);
ssize_t __pread_chk(int fd, void *to, size_t bytes, off_t offset, size_t known);
ssize_t __recv_chk(int fd, void *to, size_t bytes, size_t known, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t bytes, size_t known, int flags,
                       struct sockaddr *from, socklen_t *from_bytes);

#define TEXT_BYTES (1 << 20)
static char text[TEXT_BYTES]; /* of the length that a case wants */
static char *to;
static size_t bytes; /* that are written */
static int zero, ends[2];
static FILE *file;
#define KNOWN ((size_t)TEXT_BYTES) /* what the fortified forms are told */

static int vprint(const char *how, ...)
{
    va_list values;
    va_start(values, how);
    int length = 0;
    if (strcmp(how, "vsprintf") == 0)
        length = vsprintf(to, "%s", values);
    else if (strcmp(how, "vsnprintf") == 0)
        length = vsnprintf(to, KNOWN, "%s", values);
    else if (strcmp(how, "__vsprintf_chk") == 0)
        length = __vsprintf_chk(to, 0, KNOWN, "%s", values);
    else
        length = __vsnprintf_chk(to, KNOWN, 0, KNOWN, "%s", values);
    va_end(values);
    return length;
}

static void halve(void)
{
    memset(to, 'y', bytes / 2);
    to[bytes / 2] = '\0';
    text[bytes - 1 - bytes / 2] = '\0';
}

/* X(what the report names, statement) */
#define CASES(X)                                                                                   \
    X(memcpy, memcpy(to, text, bytes))                                                             \
    X(memmove, memmove(to, text, bytes))                                                           \
    X(mempcpy, mempcpy(to, text, bytes))                                                           \
    X(memset, memset(to, 1, bytes))                                                                \
    X(strcpy, strcpy(to, text))                                                                    \
    X(stpcpy, stpcpy(to, text))                                                                    \
    X(strncpy, strncpy(to, "short", bytes))                                                        \
    X(strcat, (halve(), strcat(to, text)))                                                         \
    X(strncat, (halve(), strncat(to, text, KNOWN)))                                                \
    X(sprintf, sprintf(to, "%s", text))                                                            \
    X(snprintf, snprintf(to, KNOWN, "%s", text))                                                   \
    X(vsprintf, vprint("vsprintf", text))                                                          \
    X(vsnprintf, vprint("vsnprintf", text))                                                        \
    X(read, read(zero, to, bytes))                                                                 \
    X(pread, pread(zero, to, bytes, 0))                                                            \
    X(recv, recv(ends[0], to, bytes, MSG_DONTWAIT))                                                \
    X(recvfrom, recvfrom(ends[0], to, bytes, MSG_DONTWAIT, NULL, NULL))                            \
    X(fread, fread(to, 1, bytes, file))                                                            \
    X(fgets, fgets(to, (int)bytes, file))                                                          \
    X(__memcpy_chk, __memcpy_chk(to, text, bytes, KNOWN))                                          \
    X(__memmove_chk, __memmove_chk(to, text, bytes, KNOWN))                                        \
    X(__mempcpy_chk, __mempcpy_chk(to, text, bytes, KNOWN))                                        \
    X(__memset_chk, __memset_chk(to, 1, bytes, KNOWN))                                             \
    X(__strcpy_chk, __strcpy_chk(to, text, KNOWN))                                                 \
    X(__stpcpy_chk, __stpcpy_chk(to, text, KNOWN))                                                 \
    X(__strncpy_chk, __strncpy_chk(to, "short", bytes, KNOWN))                                     \
    X(__strcat_chk, (halve(), __strcat_chk(to, text, KNOWN)))                                      \
    X(__strncat_chk, (halve(), __strncat_chk(to, text, KNOWN, KNOWN)))                             \
    X(__sprintf_chk, __sprintf_chk(to, 0, KNOWN, "%s", text))                                      \
    X(__snprintf_chk, __snprintf_chk(to, KNOWN, 0, KNOWN, "%s", text))                             \
    X(__vsprintf_chk, vprint("__vsprintf_chk", text))                                              \
    X(__vsnprintf_chk, vprint("__vsnprintf_chk", text))                                            \
    X(__read_chk, __read_chk(zero, to, bytes, KNOWN))                                              \
    X(__pread_chk, __pread_chk(zero, to, bytes, 0, KNOWN))                                         \
    X(__recv_chk, __recv_chk(ends[0], to, bytes, KNOWN, MSG_DONTWAIT))                             \
    X(__recvfrom_chk, __recvfrom_chk(ends[0], to, bytes, KNOWN, MSG_DONTWAIT, NULL, NULL))         \
    X(__fread_chk, __fread_chk(to, KNOWN, 1, bytes, file))                                         \
    X(__fgets_chk, __fgets_chk(to, KNOWN, (int)bytes, file))                                       \
    X(read_memcpy, memcpy(text, to, bytes))                                                        \
    X(read_memmove, memmove(text, to, bytes))

static void run(const char *name)
{
#define X(case, statement)                                                                         \
    if (strcmp(name, #case) == 0)                                                                  \
        (void)!(statement);
    CASES(X)
#undef X
}

/* What is no block of the heap's: 64 bytes inside of more, written with 64 and 65. */
static void run_elsewhere(void)
{
    char stack[256];
    static char fixed[256];
    char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *places[] = {stack, fixed, mapped};
    bytes = 65;
    text[64] = '\0';
    for (int i = 0; i < 3; i++) {
        to = places[i];
#define X(case, statement) (void)!(statement);
        CASES(X)
#undef X
        text[64] = '\0';
    }
}

static int run_misplaced(const char *where, const char *name)
{
    char *block = malloc(40);
    if (block == NULL)
        return 2;
    to = block - 1;
    if (strcmp(where, "freed") == 0) {
        free(block);
        to = block;
    }
    bytes = 8;
    text[bytes - 1] = '\0';
    run(name);
    puts("went on");
    return 0;
}

/* The functions that write into the block that other threads and libraries never see. */
int main(int argument_count, char **arguments)
{
    if (argument_count < 3) {
#define X(case, statement) puts(#case);
        CASES(X)
#undef X
        return 0;
    }
    memset(text, 'x', sizeof text - 1);
    zero = open("/dev/zero", O_RDONLY);
    file = fopen("/dev/zero", "r");
    if (zero < 0 || file == NULL || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 2;
    if (strcmp(arguments[1], "elsewhere") == 0) {
        run_elsewhere();
        puts("went on");
        return 0;
    }
    if (strcmp(arguments[1], "freed") == 0 || strcmp(arguments[1], "before") == 0)
        return run_misplaced(arguments[1], arguments[2]);
    size_t asked = argument_count > 4 ? strtoul(arguments[4], NULL, 10) : 100;
    size_t offset = argument_count > 3 ? strtoul(arguments[3], NULL, 10) : 0;
    char *block = malloc(asked);
    if (block == NULL)
        return 2;
    to = block + offset;
    bytes = malloc_usable_size(block) - offset + strtoul(arguments[2], NULL, 10);
    text[bytes - 1] = '\0';
    errno = 77;
    if (strncmp(arguments[1], "mem", 3) == 0) {
        run(arguments[1]);
        if (errno != 77)
            return 3;
    } else {
        run(arguments[1]);
    }
    puts("went on");
    free(block);
    return 0;
}
