// SPDX-License-Identifier: MIT
//! Whose malloc C code in the program gets: with the feature `override` hakmem's, else libc's.

use std::os::raw::{c_char, c_void};

#[global_allocator]
static GLOBAL: hakmem::Hakmem = hakmem::Hakmem;

extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(block: *mut c_void);
    fn strdup(text: *const c_char) -> *mut c_char;
}

fn is_hakmems(block: *mut c_void) -> bool {
    unsafe {
        let owned = hakmem_sys::hakmem_is_owned(block) == 1;
        free(block);
        owned
    }
}

#[test]
fn c_code_has_the_malloc_that_was_chosen() {
    let is_chosen = cfg!(feature = "override");
    unsafe {
        assert_eq!(is_hakmems(malloc(100)), is_chosen);
        assert_eq!(is_hakmems(malloc(1 << 20)), is_chosen);
        assert_eq!(is_hakmems(strdup(b"libc's own\0".as_ptr().cast()).cast()), is_chosen);
    }
}
