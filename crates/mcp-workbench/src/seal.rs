//! Signed texts that we give out and get back. Only this process can make them, and each is valid for one purpose.
//! Whoever holds one can read it, so they contain no secrets. The key lives as long as the process.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The purpose of a seal. A seal for one purpose is not valid for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealPurpose {
    /// Identifies a call that waits for its client's answers.
    ParkedCall,
    /// Identifies the server of a task.
    Task,
    /// Identifies a run that its client follows as a task.
    Run,
}

pub(crate) struct Sealer {
    key: [u8; 32],
}

impl Sealer {
    /// Creates a sealer with a random key.
    pub(crate) fn new() -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system has random numbers");
        Self { key }
    }

    pub(crate) fn seal(&self, purpose: SealPurpose, content: &str) -> String {
        let mac = self.mac(purpose, content).finalize().into_bytes();
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        format!("{}.{}", encode(content.as_bytes()), encode(&mac))
    }

    /// Returns the content of a seal; `None` if it is not ours or has a different purpose.
    pub(crate) fn open(&self, purpose: SealPurpose, sealed: &str) -> Option<String> {
        let (content, mac) = sealed.split_once('.')?;
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let content = String::from_utf8(decode(content)?).ok()?;
        // `verify_slice` compares in constant time, so that a MAC cannot be guessed byte by byte.
        let genuine = self.mac(purpose, &content).verify_slice(&decode(mac)?);
        genuine.ok().map(|()| content)
    }

    fn mac(&self, purpose: SealPurpose, content: &str) -> Hmac<Sha256> {
        let purpose: &[u8] = match purpose {
            SealPurpose::ParkedCall => b"parked call\0",
            SealPurpose::Task => b"task\0",
            SealPurpose::Run => b"run\0",
        };
        let mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("keys of every length are good");
        mac.chain_update(purpose).chain_update(content)
    }
}

impl Default for Sealer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_seals_open_and_only_for_their_purpose() {
        let sealer = Sealer::new();
        let sealed = sealer.seal(SealPurpose::Task, "content ü");
        let open = |sealed: &str| sealer.open(SealPurpose::Task, sealed);
        assert_eq!(open(&sealed).as_deref(), Some("content ü"));
        assert_eq!(sealer.open(SealPurpose::ParkedCall, &sealed), None);
        assert_eq!(Sealer::new().open(SealPurpose::Task, &sealed), None);
        let (content, mac) = sealed.split_once('.').unwrap();
        let other = BASE64_URL_SAFE_NO_PAD.encode("another content");
        for forged in [
            "",
            ".",
            content,
            &format!("{content}."),
            &format!("{other}.{mac}"),
            &format!("{content}.{}", &mac[1..]),
            &format!("{sealed}A"),
        ] {
            assert_eq!(open(forged), None, "{forged}");
        }
    }

    #[test]
    fn seals_can_stand_in_a_header() {
        let sealed = Sealer::new().seal(SealPurpose::Task, "a\nb");
        assert!(sealed.bytes().all(|byte| byte.is_ascii_graphic()));
    }
}
