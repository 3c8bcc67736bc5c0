/* SPDX-License-Identifier: MIT */
#include "api/service.h"

#include "api/api.h"
#include "api/background.h"
#include "os/os.h"

struct service hak_service_begin_slow(uintptr_t here)
{
    struct service service = {.is_shielded = hak_load_relaxed(&hak_gate_jumps_matter)};
    if (HAK_UNLIKELY(service.is_shielded))
        service.signals_before = hak_os_block_signals();
    if (HAK_UNLIKELY(hak_lock_is_abandoned()))
        hak_thread_mend();
    service.heap = hak_thread_heap();
    if (HAK_UNLIKELY(service.heap != NULL && hak_gate_is_abandoned_at(&service.heap->gate, here)))
        service.heap = hak_thread_replace_heap(service.heap);
    if (HAK_UNLIKELY(service.heap == NULL || hak_gate_is_nested(&service.heap->gate) ||
                     hak_lock_is_inside())) {
        service.heap = hak_heap_borrow();
        service.is_borrowed = true;
    }
    if (service.heap != NULL)
        hak_gate_enter(&service.heap->gate);
    return service;
}

void hak_service_end_slow(const struct service *service)
{
    if (service->heap != NULL && service->is_borrowed) {
        hak_gate_leave(&service->heap->gate);
        hak_heap_return(service->heap);
    }
    if (HAK_UNLIKELY(service->is_shielded))
        hak_os_restore_signals(service->signals_before);
}

void hak_service_look(struct heap *heap)
{
    uint64_t now = hak_os_clock_ms();
    if (HAK_LIKELY(heap->slow_count % HAK_SLOW_OPERATIONS_PER_TICK != 0 &&
                   now - heap->tick_ms < HAK_TICK_LATE_MS))
        return;
    heap->tick_ms = now;
    hak_maintain_heap(heap);
    hak_maintain_tick();
    hak_background_consider_heap(heap);
}
