//! The replacement for the keyring in builds without it. It is empty and stores nothing.

use super::StoreFault;

#[expect(
    clippy::unnecessary_wraps,
    reason = "where there is a keyring it may fail"
)]
pub(super) fn load(_: &str) -> Result<Option<String>, StoreFault> {
    Ok(None)
}

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
