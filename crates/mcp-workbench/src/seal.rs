//! Texts that we give out and get back, and values that we store elsewhere. Each is valid for one purpose, and only
//! processes with the same key can make or open it.
//!
//! Without a configured key the key is random and lives as long as the process. With one, all replicas and the next
//! process open what this one has sealed. Seals are made with the current key; the previous key only opens.

use std::{fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};

/// The minimum length of the text of a key, in bytes.
pub(crate) const MIN_KEY_LENGTH: usize = 32;
/// The length of the random part of a sealed value.
const SALT_LENGTH: usize = 16;

/// The purpose of a seal. A seal for one purpose is not valid for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealPurpose {
    /// Identifies a call that waits for its client's answers.
    ParkedCall,
    /// Identifies the server of a task.
    Task,
    /// Identifies a run that its client follows as a task.
    Run,
    /// Contains a session of a client.
    Session,
    /// Identifies a question to a client.
    Question,
    /// Identifies a stream of a session.
    Stream,
    /// Names the sender of a request that a replica forwards.
    Forwarded,
    /// Encrypts a value in the store.
    Stored,
    /// The credentials of a user at a server.
    Credentials,
    /// A browser that signs its user in.
    SignIn,
}

impl SealPurpose {
    fn name(self) -> &'static str {
        match self {
            Self::ParkedCall => "parked call",
            Self::Task => "task",
            Self::Run => "run",
            Self::Session => "session",
            Self::Question => "question",
            Self::Stream => "stream",
            Self::Forwarded => "forwarded",
            Self::Stored => "stored",
            Self::Credentials => "credentials",
            Self::SignIn => "sign-in",
        }
    }
}

/// The keys of the configuration.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SealKeys {
    current: Key,
    /// The key before the current one, whose seals are still opened.
    previous: Option<Key>,
}

type Key = [u8; 32];

/// A text that is too short for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key needs at least {MIN_KEY_LENGTH} characters")]
pub(crate) struct ShortKey;

impl SealKeys {
    /// Derives the keys from their texts, of which every character counts.
    pub(crate) fn new(current: &str, previous: Option<&str>) -> Result<Self, ShortKey> {
        let derive = |text: &str| {
            // Files and variables often end with a line break.
            let text = text.trim();
            let key = derive_key(text.as_bytes(), &[b"mcp-workbench seal key"]);
            (text.len() >= MIN_KEY_LENGTH)
                .then_some(key)
                .ok_or(ShortKey)
        };
        Ok(Self {
            current: derive(current)?,
            previous: previous.map(derive).transpose()?,
        })
    }

    fn random() -> Self {
        Self {
            current: random(),
            previous: None,
        }
    }

    /// Returns the keys that open seals, the likelier one first.
    fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

/// Hides the keys.
impl fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealKeys").finish_non_exhaustive()
    }
}

/// Seals and opens. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sealer {
    keys: Arc<SealKeys>,
    is_configured: bool,
}

impl Sealer {
    /// Creates a sealer with the keys of the configuration, or with a random key.
    pub(crate) fn new(keys: Option<&SealKeys>) -> Self {
        Self {
            keys: Arc::new(keys.cloned().unwrap_or_else(SealKeys::random)),
            is_configured: keys.is_some(),
        }
    }

    /// Returns whether other processes have the same key.
    pub(crate) fn is_configured(&self) -> bool {
        self.is_configured
    }

    /// Signs a text. Whoever holds it can read it, so it must contain no secret.
    pub(crate) fn seal(&self, purpose: SealPurpose, content: &str) -> String {
        let mac = hmac::sign(&mac_key(&self.keys.current), &signed(purpose, content));
        format!("{}.{}", encode(content.as_bytes()), encode(mac.as_ref()))
    }

    /// Returns the content of a signed text; `None` if it is not ours or has a different purpose.
    pub(crate) fn open(&self, purpose: SealPurpose, sealed: &str) -> Option<String> {
        let (content, given) = sealed.split_once('.')?;
        let content = String::from_utf8(decode(content)?).ok()?;
        let given = decode(given)?;
        // `verify` compares in constant time, so that a MAC cannot be guessed byte by byte.
        let signed = signed(purpose, &content);
        let mut keys = self.keys.all();
        let is_genuine = keys.any(|key| hmac::verify(&mac_key(key), &signed, &given).is_ok());
        is_genuine.then_some(content)
    }

    /// Encrypts a text, so that whoever holds it can neither read nor change it.
    pub(crate) fn hide(&self, purpose: SealPurpose, content: &str) -> String {
        self.hide_at(purpose, "", content)
    }

    /// Encrypts a text that opens only with the same `place`.
    pub(crate) fn hide_at(&self, purpose: SealPurpose, place: &str, content: &str) -> String {
        encode(&self.encrypt(purpose, place, content.as_bytes()))
    }

    /// Returns the content of an encrypted text; `None` if it is not ours or has a different purpose.
    pub(crate) fn reveal(&self, purpose: SealPurpose, hidden: &str) -> Option<String> {
        self.reveal_at(purpose, "", hidden)
    }

    /// Returns the content of a text that was encrypted with this `place`.
    pub(crate) fn reveal_at(
        &self,
        purpose: SealPurpose,
        place: &str,
        hidden: &str,
    ) -> Option<String> {
        let content = self.decrypt(purpose, place, &decode(hidden)?)?;
        String::from_utf8(content).ok()
    }

    /// Encrypts a value, so that nobody without the key can read or change it. It opens only with the same purpose and the
    /// same `place`, for instance its owner and the name under which it is stored: a value that somebody moves to
    /// another place does not open there.
    pub(crate) fn encrypt(&self, purpose: SealPurpose, place: &str, content: &[u8]) -> Vec<u8> {
        let salt = random::<SALT_LENGTH>();
        let mut bytes = content.to_vec();
        cipher(&self.keys.current, purpose, &salt)
            .seal_in_place_append_tag(nonce(), Aad::from(place), &mut bytes)
            .expect("values are far below 64 GiB");
        [&salt[..], &bytes].concat()
    }

    /// Returns the content of an encrypted value; `None` if it is not ours or has a different purpose or place.
    pub(crate) fn decrypt(
        &self,
        purpose: SealPurpose,
        place: &str,
        sealed: &[u8],
    ) -> Option<Vec<u8>> {
        let (salt, bytes) = sealed.split_first_chunk::<SALT_LENGTH>()?;
        self.keys.all().find_map(|key| {
            let mut bytes = bytes.to_vec();
            let opened =
                cipher(key, purpose, salt).open_in_place(nonce(), Aad::from(place), &mut bytes);
            Some(opened.ok()?.to_vec())
        })
    }
}

impl Default for Sealer {
    fn default() -> Self {
        Self::new(None)
    }
}

fn mac_key(key: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key)
}

/// Returns the bytes that a MAC covers.
fn signed(purpose: SealPurpose, content: &str) -> Vec<u8> {
    // The zero byte ends the purpose, so that no content can continue it.
    [purpose.name().as_bytes(), &[0], content.as_bytes()].concat()
}

/// Returns the cipher of one value. Every value has a key of its own, so that the number of values is not bounded by
/// the nonce, which would be too short to be random.
fn cipher(key: &Key, purpose: SealPurpose, salt: &[u8; SALT_LENGTH]) -> LessSafeKey {
    let key = derive_key(key, &[b"encrypt", purpose.name().as_bytes(), salt]);
    let key = UnboundKey::new(&AES_256_GCM, &key).expect("the key has the right length");
    LessSafeKey::new(key)
}

/// Returns the only nonce of a key that encrypts one value.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// Derives a key for a use, which is named by its parts.
fn derive_key(secret: &[u8], parts: &[&[u8]]) -> Key {
    let mut mac = hmac::Context::with_key(&mac_key(secret));
    for part in parts {
        // With its length, so that two parts never look like one.
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    let mac = mac.sign();
    mac.as_ref()
        .try_into()
        .expect("the MAC is as long as a key")
}

fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "one key of the replicas, long enough";
    const OTHER: &str = "other key of the replicas, long enough";

    fn sealer(current: &str, previous: Option<&str>) -> Sealer {
        Sealer::new(Some(&SealKeys::new(current, previous).unwrap()))
    }

    #[test]
    fn only_our_seals_open_and_only_for_their_purpose() {
        let sealer = Sealer::default();
        let sealed = sealer.seal(SealPurpose::Task, "content ü");
        let open = |sealed: &str| sealer.open(SealPurpose::Task, sealed);
        assert_eq!(open(&sealed).as_deref(), Some("content ü"));
        assert_eq!(sealer.open(SealPurpose::ParkedCall, &sealed), None);
        assert_eq!(Sealer::default().open(SealPurpose::Task, &sealed), None);
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
        let sealer = Sealer::default();
        let sealed = sealer.seal(SealPurpose::Task, "a\nb");
        let hidden = sealer.hide(SealPurpose::Task, "a\nb");
        for text in [&sealed, &hidden] {
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        assert_eq!(
            sealer.reveal(SealPurpose::Task, &hidden).as_deref(),
            Some("a\nb")
        );
    }

    #[test]
    fn encrypted_values_open_only_for_their_purpose_at_their_place() {
        let sealer = sealer(ONE, None);
        let value = sealer.encrypt(SealPurpose::Task, "alice", b"secret");
        assert!(!value.windows(6).any(|it| it == b"secret"));
        assert_ne!(value, sealer.encrypt(SealPurpose::Task, "alice", b"secret"));
        let open = |purpose, place, value: &[u8]| sealer.decrypt(purpose, place, value);
        assert_eq!(open(SealPurpose::Task, "alice", &value).unwrap(), b"secret");
        assert_eq!(open(SealPurpose::Run, "alice", &value), None);
        assert_eq!(open(SealPurpose::Task, "bob", &value), None);
        for at in 0..value.len() {
            let mut forged = value.clone();
            forged[at] ^= 1;
            assert_eq!(open(SealPurpose::Task, "alice", &forged), None, "{at}");
            assert_eq!(open(SealPurpose::Task, "alice", &value[..at]), None, "{at}");
        }
    }

    #[test]
    fn the_previous_key_opens_and_does_not_seal() {
        let (before, rotated, after) = (
            sealer(ONE, None),
            sealer(OTHER, Some(ONE)),
            sealer(OTHER, None),
        );
        let cases = [
            (&before, &rotated, true),
            (&rotated, &after, true),
            (&rotated, &rotated, true),
            (&rotated, &before, false),
            (&before, &after, false),
        ];
        for (index, (sealing, opening, opens)) in cases.into_iter().enumerate() {
            let sealed = sealing.seal(SealPurpose::Run, "7");
            let opened = opening.open(SealPurpose::Run, &sealed);
            assert_eq!(opened.is_some(), opens, "{index}");
            let value = sealing.encrypt(SealPurpose::Task, "alice", b"secret");
            let opened = opening.decrypt(SealPurpose::Task, "alice", &value);
            assert_eq!(opened.is_some(), opens, "{index}");
        }
    }

    #[test]
    fn short_keys_are_refused() {
        let short = &ONE[..MIN_KEY_LENGTH - 1];
        let padded = format!("{short}    \n");
        for (current, previous) in [
            (short, None),
            (&padded, None),
            (ONE, Some(short)),
            ("", None),
        ] {
            assert_eq!(SealKeys::new(current, previous), Err(ShortKey));
        }
        assert_eq!(
            SealKeys::new(ONE, None),
            SealKeys::new(&format!("{ONE}\n"), None)
        );
    }
}
