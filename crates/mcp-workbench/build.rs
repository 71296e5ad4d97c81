//! Has the linker put the functions together that every session runs: `layout.ld`, which `scripts/layout` writes. A
//! build without it is as good, and takes more memory (docs/decisions/0022-layout.md).
#![expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts by the environment"
)]

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Where the layout is, beside this file.
const LAYOUT: &str = "layout.ld";

fn main() {
    println!("cargo::rerun-if-changed={LAYOUT}");
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let layout = Path::new(&said_by_cargo("CARGO_MANIFEST_DIR")).join(LAYOUT);
    let is_wanted =
        is("CARGO_CFG_TARGET_OS", "linux") && is("PROFILE", "release") && layout.exists();
    if !is_wanted || names_a_linker() {
        return;
    }
    let Some(folder) = folder_of_lld() else {
        return;
    };
    println!("cargo::rustc-link-arg-bins=-B{}", folder.display());
    println!("cargo::rustc-link-arg-bins=-fuse-ld=lld");
    println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", layout.display());
}

/// Whether somebody chose a linker.
fn names_a_linker() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    env::var_os("RUSTC_LINKER").is_some() || flags.contains("fuse-ld") || flags.contains("linker")
}

/// Where the toolchain keeps its own lld, for compilers that look for linkers there. Some toolchains have none, and the
/// linker of GNU takes more than ten minutes for as many patterns.
fn folder_of_lld() -> Option<PathBuf> {
    let answer = Command::new(said_by_cargo("RUSTC"))
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let sysroot = String::from_utf8(answer.stdout).ok()?;
    let folder = Path::new(sysroot.trim_end())
        .join("lib/rustlib")
        .join(said_by_cargo("HOST"))
        .join("bin/gcc-ld");
    folder.join("ld.lld").exists().then_some(folder)
}

fn said_by_cargo(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
