/* SPDX-License-Identifier: MIT */
/* os/probe.h - places where a tracer can look in while the program runs.
 *
 * Owns        hak_probe, and whether there are probes: <sys/sdt.h> (systemtap-sdt-dev) must be
 *             there when hakmem is built. A probe is one instruction that does nothing, and a note
 *             that says where it is.
 * Invariants  slow paths only: each counter of stats/counters.h that a thread keeps and each event
 *             of stats/event_log.h is a probe of that name, with its number.
 * Threads     any.
 * Tests       tests/install/probes_install.sh
 */
#ifndef HAK_OS_PROBE_H
#define HAK_OS_PROBE_H

#include "base/compiler.h"

#if defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define hak_probe(name, number) DTRACE_PROBE1(hakmem, name, number)
#endif
#endif
#ifndef hak_probe
#define hak_probe(name, number) ((void)(number))
#endif

#endif
