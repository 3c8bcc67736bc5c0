// SPDX-License-Identifier: MIT
//! The global allocator: every shape of request, contents kept, served by hakmem.

use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::HashMap;
use std::fs::File;
use std::sync::mpsc;
use std::thread;

#[global_allocator]
static GLOBAL: hakmem::Hakmem = hakmem::Hakmem;

fn is_hakmems<T>(block: *const T) -> bool {
    unsafe { hakmem_sys::hakmem_is_owned(block.cast()) == 1 }
}

fn shapes() -> impl Iterator<Item = Layout> {
    let sizes = [1, 7, 8, 9, 16, 24, 100, 4096, 5000, 200_000, 300_000, 3_000_000];
    let layout = move |bytes| move |shift| Layout::from_size_align(bytes, 1usize << shift).unwrap();
    sizes.into_iter().flat_map(move |bytes| (0..22).map(layout(bytes)))
}

fn bytes_of(block: *mut u8, bytes: usize) -> &'static mut [u8] {
    unsafe { std::slice::from_raw_parts_mut(block, bytes) }
}

#[test]
fn blocks_are_hakmems() {
    assert!(is_hakmems(&*Box::new(1)));
    assert!(is_hakmems(vec![0u8; 1 << 20].as_ptr()));
}

#[test]
fn every_shape_is_aligned_and_keeps_its_contents() {
    for layout in shapes() {
        for new_bytes in [1, 8, 40, layout.size() / 3 + 1, layout.size() * 2, 400_000] {
            unsafe {
                let block = alloc(layout);
                assert!(is_hakmems(block) && block as usize % layout.align() == 0, "{:?}", layout);
                bytes_of(block, layout.size()).fill(7);
                let moved = realloc(block, layout, new_bytes);
                assert!(moved as usize % layout.align() == 0, "{:?} to {}", layout, new_bytes);
                let kept = layout.size().min(new_bytes);
                assert!(bytes_of(moved, kept).iter().all(|&byte| byte == 7));
                bytes_of(moved, new_bytes).fill(8);
                dealloc(moved, Layout::from_size_align(new_bytes, layout.align()).unwrap());
            }
        }
    }
}

#[test]
fn zeroed_blocks_of_every_shape_are_zero() {
    for layout in shapes() {
        for _ in 0..3 {
            unsafe {
                let block = alloc_zeroed(layout);
                assert!(is_hakmems(block) && block as usize % layout.align() == 0, "{:?}", layout);
                let bytes = bytes_of(block, layout.size());
                assert!(bytes.iter().all(|&byte| byte == 0), "{:?}", layout);
                bytes.fill(1);
                dealloc(block, layout);
            }
        }
    }
}

#[test]
fn impossible_requests_are_refused() {
    assert!(Vec::<u8>::new().try_reserve(isize::MAX as usize).is_err());
    let mut some = vec![1u8; 100];
    assert!(some.try_reserve(isize::MAX as usize - 200).is_err());
    assert_eq!(some, [1; 100]);
}

#[test]
fn threads_free_each_others_blocks() {
    let (give, take) = mpsc::channel::<Vec<String>>();
    let reader = thread::spawn(move || take.into_iter().map(|words| words.len()).sum::<usize>());
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let give = give.clone();
            thread::spawn(move || {
                for i in 0..300 {
                    give.send((0..i).map(|word| (writer * word).to_string()).collect()).unwrap();
                }
            })
        })
        .collect();
    drop(give);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(reader.join().unwrap(), 3 * 300 * 299 / 2);
}

#[test]
fn numbers_follow_the_program() {
    let before = hakmem::stats();
    let table: HashMap<u32, String> = (0..10_000).map(|i| (i, i.to_string())).collect();
    let during = hakmem::stats();
    assert!(during.live_bytes > before.live_bytes + 100_000);
    assert_eq!(hakmem::version(), 100);
    drop(table);
    let parts = hakmem::residency().unwrap();
    assert!(parts.resident_bytes >= parts.metadata_bytes && parts.metadata_bytes > 0);
    hakmem::thread_idle();
}

#[test]
fn trimming_gives_memory_back() {
    drop((0..64).map(|_| vec![1u8; 100_000]).collect::<Vec<_>>());
    let before = hakmem::stats().returned_bytes;
    hakmem::trim(0);
    assert!(hakmem::stats().returned_bytes > before);
}

#[test]
fn options_are_read_and_set_by_name() {
    hakmem::set_option("retain", "64M").unwrap();
    assert_eq!(hakmem::option("retain").unwrap(), "67108864");
    assert!(hakmem::option("no_such").is_err());
    assert!(hakmem::set_option("retain", "blue").is_err());
    assert!(hakmem::set_option("retain", "1\0").is_err());
}

#[test]
fn statistics_are_written_in_every_form() {
    let path = std::env::temp_dir().join(format!("hakmem-stats-{}", std::process::id()));
    for (form, word) in [
        ("text", "refills"), ("raw", "refills: "), ("json", "{"), ("xml", "<"), ("openmetrics", "# EOF"),
    ] {
        hakmem::write_stats(&File::create(&path).unwrap(), form).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains(word), "{}", form);
    }
    assert!(hakmem::write_stats(&File::create(&path).unwrap(), "verse").is_err());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_profile_of_the_program_is_written_in_every_form() {
    hakmem::start_profile(1 << 12);
    let held: Vec<Vec<u8>> = (0..100).map(|_| vec![1; 100_000]).collect();
    hakmem::stop_profile();
    let path = std::env::temp_dir().join(format!("hakmem-profile-{}", std::process::id()));
    for form in ["pprof", "heap_v2", "folded", "json"] {
        hakmem::write_profile(&File::create(&path).unwrap(), form).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() > 0, "{}", form);
    }
    assert!(hakmem::write_profile(&File::create(&path).unwrap(), "verse").is_err());
    std::fs::remove_file(path).unwrap();
    drop(held);
}
