// SPDX-License-Identifier: MIT
//! Compiles the C sources as cmake/library.cmake does.

use std::env;
use std::path::{Path, PathBuf};

/// The sources with an ending under one folder of src/.
fn sources(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().expect("a folder of sources") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() {
            found.extend(sources(&path, ending));
        } else if path.extension().map_or(false, |it| it == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A compiler with what both languages need. Always optimised: the allocator is no part of the
/// program that somebody debugs.
fn compiler(takes_malloc: bool) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .opt_level(2)
        .warnings(false)
        .cargo_metadata(false)
        .include("hakmem/src")
        .include("hakmem/include")
        .define("HAK_PROJECT_VERSION", concat!("\"", env!("CARGO_PKG_VERSION"), "\""))
        .define("HAK_INTERPOSE", if takes_malloc { "1" } else { "0" });
    for number in ["HAK_SHARED", "HAK_CHECK_LEVEL", "HAK_TINY", "HAK_SMALL_WINDOW"] {
        build.define(number, "0");
    }
    for flag in include_str!("hakmem/code_flags.txt").lines() {
        build.flag_if_supported(flag);
    }
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        build.flag_if_supported("-fcf-protection=none");
    }
    let (host, target) = (env::var("HOST").unwrap(), env::var("TARGET").unwrap());
    let architecture = host.split('-').next().unwrap();
    if target.ends_with("-musl") && host.ends_with("-gnu") && target.starts_with(architecture) {
        // Debian's musl-gcc has musl's headers only; the kernel's are where the host has them.
        build.flag("-idirafter").flag("/usr/include");
        build.flag("-idirafter").flag(&format!("/usr/include/{}-linux-gnu", architecture));
    }
    build
}

fn main() {
    let system = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let width = env::var("CARGO_CFG_TARGET_POINTER_WIDTH").unwrap_or_default();
    assert!(system == "linux" && width == "64", "hakmem is for 64-bit Linux");

    let takes_malloc = env::var_os("CARGO_FEATURE_OVERRIDE").is_some();
    let mut c = compiler(takes_malloc);
    let mut files = sources(Path::new("hakmem/src"), "c");
    let processor = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if processor == "x86_64" || processor == "aarch64" {
        // The hot path is in assembly there.
        files.retain(|it| !it.ends_with("api/malloc.c") && !it.ends_with("heap/cpu_cache_none.c"));
        let ending = format!("_{}", processor);
        files.extend(sources(Path::new("hakmem/src"), "S").into_iter().filter(|it| {
            it.file_stem().map_or(false, |stem| stem.to_string_lossy().ends_with(&ending))
        }));
    }
    c.std("gnu11").files(files);
    if takes_malloc {
        // bad_alloc passes through operator new.
        c.flag("-fexceptions");
        let mut cpp = compiler(takes_malloc);
        cpp.cpp(true).cpp_link_stdlib(None).flag("-fno-rtti");
        for object in cpp.files(sources(Path::new("hakmem/src"), "cpp")).compile_intermediates() {
            c.object(object);
        }
    } else {
        c.file("src/no_catch.c");
    }
    c.compile("hakmem");

    // Whole: no search order of libraries decides whose malloc a program gets, and constructors
    // that nobody calls by name are there.
    println!("cargo:rustc-link-search=native={}", env::var("OUT_DIR").expect("OUT_DIR"));
    println!("cargo:rustc-link-lib=static:+whole-archive,-bundle=hakmem");
    println!("cargo:rustc-link-lib=pthread");
    println!("cargo:include={}", Path::new("hakmem/include").canonicalize().expect("it").display());
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/no_catch.c");
    println!("cargo:rerun-if-changed=hakmem");
}
