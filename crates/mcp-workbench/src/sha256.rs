//! SHA-256, by the cryptography that TLS brings along, and digests as text.

use ring::digest::{Context, SHA256};

/// The digits of digests as text.
pub(crate) const HEXADECIMAL: [u8; 16] = *b"0123456789abcdef";

/// A hash that is being made.
pub(crate) struct Sha256(Context);

impl Sha256 {
    pub(crate) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    /// Returns the digest of some bytes.
    pub(crate) fn digest(bytes: impl AsRef<[u8]>) -> [u8; 32] {
        let mut hash = Self::new();
        hash.update(bytes);
        hash.finish()
    }

    pub(crate) fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes.as_ref());
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        let digest = self.0.finish();
        digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

/// Returns two lower-case digits per byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let digits = digits.map(|digit| char::from(HEXADECIMAL[usize::from(digit)]));
    digits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_in_parts_is_the_digest_of_the_whole() {
        let mut parts = Sha256::new();
        parts.update("a");
        parts.update(b"bc");
        let digest = parts.finish();
        assert_eq!(digest, Sha256::digest("abc"));
        // The example of FIPS 180-4.
        assert_eq!(
            hexadecimal(&digest),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
