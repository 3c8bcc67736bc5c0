/* SPDX-License-Identifier: MIT */
#include "hardened/fenced.h"

#include "misuse/fence_choice.h"
#include "os/fault_watch.h"
#include "os/unwind.h"

static struct guarded_trace trace_of(struct os_caller caller)
{
    struct guarded_trace trace = {{0}, hak_os_thread_label()};
    hak_os_unwind(caller, trace.addresses, HAK_GUARDED_FRAMES);
    return trace;
}

/* Bytes are no part of it: the record has them. */
static uintptr_t form_of(const struct request *request)
{
    uint32_t shift = request->alignment == 0 ? 0 : hak_bit_highest(request->alignment) + 1;
    return (uintptr_t)hak_mark_pack((struct mark){
        .kind = (uint8_t)request->kind, .alignment_shift = (uint8_t)shift, .state = MARK_LIVE});
}

HAK_NOINLINE void *hak_fenced_take(const struct request *request, struct os_caller caller)
{
    if (!hak_fence_names_bytes(request->bytes))
        return NULL;
    struct guarded_trace trace = trace_of(caller);
    if (!hak_fence_names_calls(&trace))
        return NULL;
    if (!hak_lock_is_inside())
        hak_copy_look();
    void *block = hak_fence_take(
        &(struct fence_request){request->bytes, request->alignment, form_of(request)}, &trace);
    if (block != NULL)
        hak_os_fault_watch_raise();
    return block;
}

bool hak_fenced_look(const void *block, struct mark *mark)
{
    struct guarded_view view;
    hak_guarded_look(block, &view);
    *mark = hak_mark_unpack(view.form);
    mark->bytes = view.bytes;
    return view.state == GUARDED_LIVE && view.block == (uintptr_t)block;
}

HAK_NOINLINE void hak_fenced_give(void *block, struct os_caller caller)
{
    struct guarded_trace trace = trace_of(caller);
    hak_guarded_give(block, &trace);
}
