//! The signatures of tokens, checked with `ring`, the cryptography that TLS uses here too. `jsonwebtoken` brings none of
//! its own this way.

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{Error, ErrorKind},
    signature::{self, Verifier},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes this the cryptography of `jsonwebtoken`. Doing it again changes nothing.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// A way to check the signatures of one algorithm.
#[derive(Clone, Copy)]
enum SignatureCheck {
    Rsa(&'static RsaParameters),
    Other(&'static dyn VerificationAlgorithm),
}

struct RingVerifier {
    algorithm: Algorithm,
    check: SignatureCheck,
    key: DecodingKey,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the provider has this signature"
)]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let check = match algorithm {
        Algorithm::RS256 => SignatureCheck::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => SignatureCheck::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => SignatureCheck::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => SignatureCheck::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => SignatureCheck::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => SignatureCheck::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => SignatureCheck::Other(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => SignatureCheck::Other(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => SignatureCheck::Other(&ED25519),
        // A shared secret would let every holder of it issue tokens.
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    };
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        check,
        key: key.clone(),
    }))
}

/// Refuses to sign: the workbench issues no tokens.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the provider has this signature"
)]
fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match (self.check, self.key.kind()) {
            (SignatureCheck::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (SignatureCheck::Other(algorithm), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(algorithm, key).verify(message, signature)
            }
            _ => Err(ring::error::Unspecified),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
