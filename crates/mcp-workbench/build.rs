//! Has the linker put the functions together that every session runs: `layout.ld`, which `scripts/layout` writes. A
//! build without it is as good, and takes more memory (docs/decisions/0022-layout.md).
#![expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts by the environment"
)]

use std::{env, path::Path};

/// Where the layout is, beside this file.
const LAYOUT: &str = "layout.ld";

fn main() {
    println!("cargo::rerun-if-changed={LAYOUT}");
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let layout = Path::new(&folder).join(LAYOUT);
    let is_wanted = is("CARGO_CFG_TARGET_OS", "linux") && is("PROFILE", "release");
    if is_wanted && layout.exists() && !names_a_linker() {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", layout.display());
    }
}

/// Whether somebody chose a linker: not all of them read such files.
fn names_a_linker() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    env::var_os("RUSTC_LINKER").is_some() || flags.contains("fuse-ld") || flags.contains("linker=")
}
