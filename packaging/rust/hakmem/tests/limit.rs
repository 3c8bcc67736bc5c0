// SPDX-License-Identifier: MIT
//! A limit refuses, and is lifted: alone here, as it holds for the whole process.

#[global_allocator]
static GLOBAL: hakmem::Hakmem = hakmem::Hakmem;

#[test]
fn a_limit_refuses_until_it_is_lifted() {
    hakmem::set_limit(Some(64 << 20)).unwrap();
    let mut bytes = Vec::<u8>::new();
    assert!(bytes.try_reserve_exact(128 << 20).is_err());
    assert!(hakmem::stats().out_of_memory_count > 0);
    hakmem::set_limit(None).unwrap();
    bytes.try_reserve_exact(128 << 20).unwrap();
}
