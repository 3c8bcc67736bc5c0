// SPDX-License-Identifier: MIT
//! What concerns the whole process: numbers, settings, memory to give back.

use crate::{Residency, Stats};
use std::ffi::{CStr, CString};
use std::io;
use std::mem::size_of;
use std::os::raw::{c_char, c_int};
use std::os::unix::io::AsRawFd;

fn result(error: c_int) -> io::Result<()> {
    match error {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// The version of the library: major * 10000 + minor * 100 + patch.
pub fn version() -> u32 {
    unsafe { hakmem_sys::hakmem_version() as u32 }
}

/// Statistics of the process. Values are of slightly different moments while other threads run.
pub fn stats() -> Stats {
    let mut stats = Stats::default();
    unsafe { hakmem_sys::hakmem_stats_get(&mut stats, size_of::<Stats>()) };
    stats
}

/// Where the memory is that the process has for hakmem. Looks at every page: some milliseconds for
/// each GiB. An error: the kernel does not tell.
pub fn residency() -> io::Result<Residency> {
    let mut residency = Residency::default();
    let bytes = size_of::<Residency>();
    result(unsafe { hakmem_sys::hakmem_residency_get(&mut residency, bytes) })?;
    Ok(residency)
}

/// Writes all statistics to a file, in one of the forms text, raw, json, xml and openmetrics;
/// summary is the first lines of text.
pub fn write_stats(file: &impl AsRawFd, form: &str) -> io::Result<()> {
    let form = c_string(form)?;
    result(unsafe { hakmem_sys::hakmem_stats_print(file.as_raw_fd(), form.as_ptr()) })
}

/// Starts sampling about one allocation per `mean_bytes` for the heap profile, which
/// `hakmem profile PID` shows. 0: the option heap_profile_rate.
pub fn start_profile(mean_bytes: usize) {
    unsafe { hakmem_sys::hakmem_profile_start(mean_bytes) }
}

/// Stops sampling. Blocks that were sampled are tracked until they are freed.
pub fn stop_profile() {
    unsafe { hakmem_sys::hakmem_profile_stop() }
}

/// Writes the samples so far to a file, in one of the forms pprof, heap_v2, folded and json, without
/// function names, which `hakmem profile FILE` finds.
pub fn write_profile(file: &impl AsRawFd, form: &str) -> io::Result<()> {
    let form = c_string(form)?;
    result(unsafe { hakmem_sys::hakmem_profile_print(file.as_raw_fd(), form.as_ptr()) })
}

/// Gives the kernel all memory that is free, but for about `pad_bytes`, and returns the bytes given.
pub fn trim(pad_bytes: usize) -> usize {
    unsafe { hakmem_sys::hakmem_trim(pad_bytes) }
}

/// A hint that the calling thread will not allocate for some time: what it keeps goes where other
/// threads can have it.
pub fn thread_idle() {
    unsafe { hakmem_sys::hakmem_thread_idle() }
}

/// The value of an option: numbers in bytes or milliseconds, -1 for never. An error: there is none
/// of that name.
pub fn option(name: &str) -> io::Result<String> {
    let name = c_string(name)?;
    let mut value = [0 as c_char; 256];
    result(unsafe {
        hakmem_sys::hakmem_option_get(name.as_ptr(), value.as_mut_ptr(), value.len())
    })?;
    Ok(unsafe { CStr::from_ptr(value.as_ptr()) }.to_string_lossy().into_owned())
}

/// Sets an option, in the words of the environment ("64M", "2s"). An error: there is none of that
/// name, the value is wrong, or the option is read only when the process starts.
pub fn set_option(name: &str, value: &str) -> io::Result<()> {
    let (name, value) = (c_string(name)?, c_string(value)?);
    result(unsafe { hakmem_sys::hakmem_option_set(name.as_ptr(), value.as_ptr()) })
}

/// Bounds what hakmem may hold, in bytes: beyond that requests are refused until something is freed.
/// None: no bound.
pub fn set_limit(bytes: Option<u64>) -> io::Result<()> {
    set_option("limit", &bytes.unwrap_or(0).to_string())
}
