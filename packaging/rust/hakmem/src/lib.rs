// SPDX-License-Identifier: MIT
//! The hakmem memory allocator for Rust programs on 64-bit Linux.
//!
//! ```
//! #[global_allocator]
//! static GLOBAL: hakmem::Hakmem = hakmem::Hakmem;
//!
//! fn main() {
//!     let words: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
//!     assert!(hakmem::stats().live_bytes > 0);
//!     drop(words);
//! }
//! ```
//!
//! Settings are read from the environment when the program starts, `HAKMEM_CONF=decay:2s` say, and
//! [`set_option`] changes some of them later.
#![warn(missing_docs)]

mod global;
#[cfg(feature = "allocator-api2")]
mod heap;
mod process;

pub use global::Hakmem;
#[cfg(feature = "allocator-api2")]
pub use heap::Heap;
pub use process::{
    option, residency, set_limit, set_option, start_profile, stats, stop_profile, thread_idle,
    trim, version, write_profile, write_stats,
};

pub use hakmem_sys::{
    hakmem_heap_stats as HeapStats, hakmem_residency as Residency, hakmem_stats as Stats,
};
