//! Proof of who a client is by its private key: a signed JSON Web Token instead of a secret (RFC 7523).

use std::time::SystemTime;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::json;
use tokio_rustls::rustls::{
    SignatureScheme,
    crypto::ring::sign::any_supported_type,
    pki_types::{PrivateKeyDer, pem::PemObject},
};

use super::{error::SignInError, record::seconds};
use crate::{config::SigningAlgorithm, private_files};

/// The lifetime of an assertion, in seconds.
const LIFE: u64 = 300;

/// The key and the algorithm of the signature.
pub(super) struct Signer<'a> {
    /// The private key in PEM form.
    pub(super) key: &'a str,
    pub(super) algorithm: SigningAlgorithm,
}

impl Signer<'_> {
    /// Returns an assertion that a client makes a request to an authority.
    pub(super) fn assertion(&self, client: &str, audience: &str) -> Result<String, SignInError> {
        let now = seconds(SystemTime::now());
        // Servers refuse an assertion whose `jti` they have seen before.
        let id = BASE64_URL_SAFE_NO_PAD.encode(private_files::random::<16>());
        let header = json!({"alg": self.name(), "typ": "JWT"});
        let claims = json!({
            "iss": client, "sub": client, "aud": audience,
            "iat": now, "exp": now + LIFE, "jti": id,
        });
        let encode = |value: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = self
            .sign(signed.as_bytes())
            .ok_or(SignInError::UnusableKey)?;
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
        Ok(format!("{signed}.{signature}"))
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).ok()?;
        let key = any_supported_type(&key).ok()?;
        let signer = key.choose_scheme(&[self.scheme()])?;
        let signature = signer.sign(message).ok()?;
        match self.algorithm {
            SigningAlgorithm::Es256 => fixed(&signature, 32),
            SigningAlgorithm::Es384 => fixed(&signature, 48),
            _ => Some(signature),
        }
    }

    fn scheme(&self) -> SignatureScheme {
        match self.algorithm {
            SigningAlgorithm::Rs256 => SignatureScheme::RSA_PKCS1_SHA256,
            SigningAlgorithm::Rs384 => SignatureScheme::RSA_PKCS1_SHA384,
            SigningAlgorithm::Rs512 => SignatureScheme::RSA_PKCS1_SHA512,
            SigningAlgorithm::Es256 => SignatureScheme::ECDSA_NISTP256_SHA256,
            SigningAlgorithm::Es384 => SignatureScheme::ECDSA_NISTP384_SHA384,
        }
    }

    fn name(&self) -> &'static str {
        match self.algorithm {
            SigningAlgorithm::Rs256 => "RS256",
            SigningAlgorithm::Rs384 => "RS384",
            SigningAlgorithm::Rs512 => "RS512",
            SigningAlgorithm::Es256 => "ES256",
            SigningAlgorithm::Es384 => "ES384",
        }
    }
}

/// Converts an ECDSA signature from the DER form of TLS, a sequence of two integers, to the form of tokens: two numbers of
/// fixed length.
fn fixed(signature: &[u8], length: usize) -> Option<Vec<u8>> {
    // 0x30 is a sequence. Its length fits into one byte, since both integers have at most 49 bytes.
    let [0x30, _, rest @ ..] = signature else {
        return None;
    };
    let (first, rest) = integer(rest)?;
    let (second, rest) = integer(rest)?;
    let mut fixed = vec![0; 2 * length];
    for (number, end) in [(first, length), (second, 2 * length)] {
        // Right-aligned: DER leaves out leading zeros, and tokens have them.
        let start = end.checked_sub(number.len())?;
        fixed.get_mut(start..end)?.copy_from_slice(number);
    }
    // A second number that is too long would have overwritten the end of the first one.
    let fits = first.len() <= length && second.len() <= length;
    (fits && rest.is_empty()).then_some(fixed)
}

/// Reads a DER integer. Returns it without leading zeros, with the bytes that follow it.
fn integer(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [0x02, length, rest @ ..] = bytes else {
        return None;
    };
    let (number, rest) = rest.split_at_checked(usize::from(*length))?;
    // DER puts a zero in front of a number whose highest bit is set.
    let zeros = number.iter().take_while(|it| **it == 0).count();
    Some((&number[zeros..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_get_their_fixed_form() {
        let der = [0x30, 9, 0x02, 2, 0, 0x81, 0x02, 3, 1, 2, 3];
        assert_eq!(fixed(&der, 4), Some(vec![0, 0, 0, 0x81, 0, 1, 2, 3]));
        assert_eq!(fixed(&der, 2), None);
        assert_eq!(fixed(&der[..6], 4), None);
        assert_eq!(fixed(b"", 4), None);
    }

    #[test]
    fn an_invalid_key_signs_nothing() {
        let signer = Signer {
            key: "-----BEGIN PRIVATE KEY-----\nnot\n-----END PRIVATE KEY-----",
            algorithm: SigningAlgorithm::Es256,
        };
        let assertion = signer.assertion("me", "https://as.example.com");
        assert_eq!(assertion, Err(SignInError::UnusableKey));
    }
}
