//! In place of the keyring, where the build has none: there is nothing in it, and nothing can be put there.

use super::StoreFault;

#[expect(
    clippy::unnecessary_wraps,
    reason = "where there is a keyring it may fail"
)]
pub(super) fn load(_: &str) -> Result<Option<String>, StoreFault> {
    Ok(None)
}

/// Nothing can be put there.
pub(super) fn save(_: &str, _: &str) -> bool {
    false
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "where there is a keyring it may fail"
)]
pub(super) fn remove(_: &str) -> Result<bool, StoreFault> {
    Ok(false)
}
