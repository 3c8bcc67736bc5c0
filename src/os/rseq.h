/* SPDX-License-Identifier: MIT */
/* os/rseq.h - restartable sequences: which processor a thread runs on, and a way to change that
 * processor's data without a lock.
 *
 * Owns        the layout that the kernel and libc share (rseq(2), Linux 4.18), and whether this
 *             process may use it.
 * Invariants  hakmem registers nothing and writes one field, `section`, as rseq(2) says. A thread
 *             uses the area only after the kernel has said that it knows it for this thread: an
 *             area that is not registered names processor 0 for ever, and nothing is ever
 *             restarted.
 * Threads     each asks for itself.
 * Tests       tests/unit/os/rseq_test.c, tests/preload/rseq.c
 */
#ifndef HAK_OS_RSEQ_H
#define HAK_OS_RSEQ_H

#include "base/compiler.h"

/* struct rseq of <linux/rseq.h>, of which libc registers one a thread (glibc 2.35). */
struct rseq_area {
    alignas(32) uint32_t cpu_id_start;
    uint32_t cpu_id;  /* of the processor; negative: not registered */
    uint64_t section; /* rseq_cs: the sequence in progress */
    uint32_t flags;
    uint32_t node_id;
    uint32_t mm_cid; /* Linux 6.3: dense, below the number of threads and of processors */
    uint32_t unused;
};

/* Whether caches belong to threads, and why. */
#define HAK_RSEQ_TABLE(X)                                                                          \
    X(PROCESSOR, "caches belong to processors")                                                    \
    X(CHOSEN, "option caches=thread")                                                              \
    X(WATCHED, "each call is checked or counted: hardened mode, or stats=exact")                   \
    X(BUILD, "this build has no restartable sequences for its architecture or sanitizer")          \
    X(UNREGISTERED,                                                                                \
      "libc registers no restartable sequences (glibc 2.35, its tunable, the kernel)")             \
    X(KERNEL,                                                                                      \
      "the kernel (Linux 6.19 to 7.1 on arm64) may fail to restart an interrupted sequence")       \
    X(PROCESSORS, "the machine may have more processors than hakmem distinguishes")                \
    X(CONFINED, "the process was confined (seccomp) before its first allocation")
enum rseq_reason {
#define X(kind, meaning) RSEQ_##kind,
    HAK_RSEQ_TABLE(X)
#undef X
        RSEQ_REASON_COUNT
};

/* In words; "" for what is no reason. */
const char *hak_rseq_meaning(uint32_t reason);

/* The number by which caches are distinguished. */
#define HAK_RSEQ_ID_TABLE(X)                                                                       \
    X(SLOT, "slot")                                                                                \
    X(CPU_ID, "cpu_id")                                                                            \
    X(MM_CID, "mm_cid")
enum rseq_id {
#define X(kind, name) RSEQ_ID_##kind,
    HAK_RSEQ_ID_TABLE(X)
#undef X
        RSEQ_ID_COUNT
};

/* The one in force where hak_os_rseq_start said `reason`. */
enum rseq_id hak_rseq_id(uint32_t reason);

/* "" for what is none. */
const char *hak_rseq_id_name(uint32_t id);

/* Where in an area the number is by which caches are distinguished: `mm_cid` where the kernel has
 * it, else `cpu_id`. */
extern uint32_t hak_rseq_id_offset;

/* Whether this process may use sequences; once, before the first thread asks. `ids_most`: ids must
 * be below. *ids: what they are below. */
enum rseq_reason hak_os_rseq_start(uint32_t ids_most, uint32_t *ids);

/* Of a kernel's name, say "6.19.3-arm64": on arm64 it may interrupt a sequence and let it continue,
 * if the thread returns to the same processor (Linux 6.19; finally fixed in 7.1). */
bool hak_rseq_is_unproven(const char *release);

/* The calling thread's area, registered; NULL: it has none. */
struct rseq_area *hak_os_rseq_area(void);

/* Restarts the sequences that threads of the process are executing, before it returns
 * (membarrier(2), Linux 5.10). False: the kernel refused. */
bool hak_os_rseq_fence(void);

#endif
