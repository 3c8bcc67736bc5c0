// SPDX-License-Identifier: MIT
//! The functions of `hakmem/hakmem.h`, and the library itself, linked in. The crate `hakmem` is the
//! one to use; this one is for what that lacks. What each function does is said in the header.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_void};

/// A heap: a set of blocks that can be freed at once. Only pointers to it exist.
#[repr(C)]
pub struct hakmem_heap {
    _opaque: [u8; 0],
}

/// What a checked access was about to do.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum hakmem_access {
    HAKMEM_WRITE,
    HAKMEM_READ,
}

/// A structure of the header that holds numbers only.
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($field:ident,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $(pub $field: u64,)*
        }

        impl $name {
            /// The names of the fields, in order.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field)),*];
        }
    };
}

counters! {
    /// What a heap holds at this moment.
    hakmem_heap_stats {
        live_block_count,
        live_bytes,
        held_bytes,
    }
}

counters! {
    /// Statistics of the process; the header says what adds up.
    hakmem_stats {
        window_committed_bytes,
        metadata_bytes,
        large_live_bytes,
        slab_free_resident_bytes,
        span_free_resident_bytes,
        span_free_clean_bytes,
        returned_bytes,
        superslab_count,
        slab_count,
        cache_count,
        private_heap_count,
        foreign_free_count,
        out_of_memory_count,
        kernel_call_count,
        live_bytes,
        small_live_bytes,
        small_live_block_count,
        large_live_block_count,
        cached_bytes,
        remote_free_bytes,
        block_free_bytes,
        slab_free_clean_bytes,
        unusable_bytes,
        table_bytes,
        busy_heap_count,
        guarded_live_bytes,
    }
}

counters! {
    /// Where the memory is that the process has for hakmem.
    hakmem_residency {
        resident_bytes,
        live_bytes,
        cached_bytes,
        withheld_bytes,
        slab_free_bytes,
        pinned_bytes,
        retained_bytes,
        huge_excess_bytes,
        metadata_bytes,
        untouched_bytes,
        mapping_start,
        mapping_end,
        busy_heap_count,
        record_start,
        record_end,
        mark_start,
        mark_end,
    }
}

extern "C" {
    pub fn hakmem_version() -> c_int;

    pub fn hakmem_malloc(bytes: usize) -> *mut c_void;
    pub fn hakmem_calloc(count: usize, bytes: usize) -> *mut c_void;
    pub fn hakmem_realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    pub fn hakmem_reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void;
    pub fn hakmem_free(block: *mut c_void);
    pub fn hakmem_free_sized(block: *mut c_void, bytes: usize);
    pub fn hakmem_free_aligned_sized(block: *mut c_void, alignment: usize, bytes: usize);
    pub fn hakmem_aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void;
    pub fn hakmem_posix_memalign(
        result: *mut *mut c_void,
        alignment: usize,
        bytes: usize,
    ) -> c_int;
    pub fn hakmem_malloc_long(bytes: usize) -> *mut c_void;
    pub fn hakmem_calloc_long(count: usize, bytes: usize) -> *mut c_void;
    pub fn hakmem_aligned_alloc_long(alignment: usize, bytes: usize) -> *mut c_void;
    pub fn hakmem_usable_size(block: *const c_void) -> usize;
    pub fn hakmem_good_size(bytes: usize) -> usize;
    pub fn hakmem_is_owned(block: *const c_void) -> c_int;
    pub fn hakmem_object_size(address: *const c_void) -> usize;
    pub fn hakmem_bounds_stop(
        function: *const c_char,
        access: hakmem_access,
        address: *const c_void,
        bytes: usize,
        caller: *const c_void,
    );

    pub fn hakmem_heap_new() -> *mut hakmem_heap;
    pub fn hakmem_heap_malloc(heap: *mut hakmem_heap, bytes: usize) -> *mut c_void;
    pub fn hakmem_heap_calloc(heap: *mut hakmem_heap, count: usize, bytes: usize) -> *mut c_void;
    pub fn hakmem_heap_aligned_alloc(
        heap: *mut hakmem_heap,
        alignment: usize,
        bytes: usize,
    ) -> *mut c_void;
    pub fn hakmem_heap_realloc(
        heap: *mut hakmem_heap,
        block: *mut c_void,
        bytes: usize,
    ) -> *mut c_void;
    pub fn hakmem_heap_free(heap: *mut hakmem_heap, block: *mut c_void);
    pub fn hakmem_heap_destroy(heap: *mut hakmem_heap);
    pub fn hakmem_heap_trim(heap: *mut hakmem_heap);
    pub fn hakmem_heap_of(block: *const c_void) -> *mut hakmem_heap;
    pub fn hakmem_heap_stats_get(
        heap: *mut hakmem_heap,
        stats: *mut hakmem_heap_stats,
        stats_bytes: usize,
    ) -> c_int;

    pub fn hakmem_trim(pad_bytes: usize) -> usize;
    pub fn hakmem_thread_idle();
    pub fn hakmem_option_get(name: *const c_char, value: *mut c_char, value_bytes: usize) -> c_int;
    pub fn hakmem_option_set(name: *const c_char, value: *const c_char) -> c_int;
    pub fn hakmem_stats_get(stats: *mut hakmem_stats, stats_bytes: usize) -> c_int;
    pub fn hakmem_stats_print(fd: c_int, form: *const c_char) -> c_int;
    pub fn hakmem_profile_start(mean_bytes: usize);
    pub fn hakmem_profile_stop();
    pub fn hakmem_profile_write(fd: c_int) -> c_int;
    pub fn hakmem_profile_print(fd: c_int, form: *const c_char) -> c_int;
    pub fn hakmem_residency_get(residency: *mut hakmem_residency, residency_bytes: usize) -> c_int;
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../hakmem/include/hakmem/hakmem.h");

    /// The fields of a structure, as the header has them.
    fn fields(name: &str) -> Vec<&'static str> {
        let start = HEADER.find(&format!("struct {} {{", name)).expect("the structure");
        let body = &HEADER[start..start + HEADER[start..].find("\n};").expect("its end")];
        body.lines()
            .filter_map(|line| line.trim().strip_prefix("uint64_t "))
            .map(|line| &line[..line.find(';').expect("a field")])
            .collect()
    }

    #[test]
    fn structures_are_the_headers() {
        assert_eq!(hakmem_heap_stats::FIELDS, fields("hakmem_heap_stats"));
        assert_eq!(hakmem_stats::FIELDS, fields("hakmem_stats"));
        assert_eq!(hakmem_residency::FIELDS, fields("hakmem_residency"));
    }

    #[test]
    fn every_function_of_the_header_is_declared() {
        let own = include_str!("lib.rs");
        let code = HEADER.split("*/").map(|part| part.split("/*").next().unwrap_or(""));
        let mut count = 0;
        for part in code.flat_map(|part| part.split(|c: char| c != '_' && !c.is_alphanumeric())) {
            let is_type = ["hakmem_heap", "hakmem_conf"].contains(&part)
                || ["struct", "enum"]
                    .iter()
                    .any(|kind| HEADER.contains(&format!("{} {} {{", kind, part)));
            if part.starts_with("hakmem_") && !is_type {
                assert!(own.contains(&format!("pub fn {}(", part)), "{}", part);
                count += 1;
            }
        }
        assert!(count > 20);
    }

    #[test]
    fn the_crate_has_the_version_of_the_library() {
        let parts: Vec<c_int> =
            env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().unwrap()).collect();
        assert_eq!(unsafe { hakmem_version() }, parts[0] * 10000 + parts[1] * 100 + parts[2]);
    }
}
