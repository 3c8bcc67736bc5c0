/* SPDX-License-Identifier: MIT */
#include "api/service.h"

#include "os/os.h"

/* The thread's own heap, or a borrowed one; NULL: neither. */
static struct heap *find_heap(uintptr_t here, bool *is_borrowed)
{
    struct heap *heap = hak_thread_heap();
    if (HAK_UNLIKELY(heap != NULL && hak_gate_is_abandoned_at(&heap->gate, here)))
        heap = hak_thread_replace_heap(heap);
    *is_borrowed = heap == NULL || hak_gate_is_nested(&heap->gate) || hak_lock_is_inside();
    return *is_borrowed ? hak_heap_borrow() : heap;
}

struct service hak_service_begin_slow(uintptr_t here)
{
    struct service service = {.is_shielded = hak_load_relaxed(&hak_gate_jumps_matter)};
    if (HAK_UNLIKELY(service.is_shielded))
        service.signals_before = hak_os_block_signals();
    hak_copy_look();
    if (HAK_UNLIKELY(hak_lock_is_abandoned()))
        hak_thread_mend();
    struct heap *heap = find_heap(here, &service.is_borrowed);
    while (heap != NULL && HAK_UNLIKELY(!hak_heap_enter(heap))) {
        if (service.is_borrowed)
            hak_heap_return(heap);
        else
            hak_thread_forget_heap();
        heap = find_heap(here, &service.is_borrowed);
    }
    service.cache = heap == NULL ? NULL : hak_cache_of(heap);
    return service;
}

void hak_service_end_slow(const struct service *service)
{
    if (service->cache != NULL && service->is_borrowed) {
        hak_gate_leave(&service->cache->heap.gate);
        hak_heap_return(&service->cache->heap);
    }
    if (HAK_UNLIKELY(service->is_shielded))
        hak_os_restore_signals(service->signals_before);
}
