//! How far the text of a string stands for itself, looked at many bytes at a time.

/// So many bytes are looked at as one number.
pub(super) const WORD: usize = 8;
/// The highest bit of each.
pub(super) const HIGHEST: u64 = u64::from_le_bytes([0x80; WORD]);
/// So many bytes are looked at together once a string has shown to be long.
const BLOCK: usize = 32;

/// How many bytes of a string stand for themselves: up to a quote, a backslash or a control character.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    plain_end(bytes, 0, &mut 0)
}

/// Where the bytes from `at` on no longer stand for themselves. Whatever is looked at is put into `seen`.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize, seen: &mut u64) -> usize {
    let start = at;
    while let Some(word) = word_at(bytes, at) {
        *seen |= word;
        let found = special_in(word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += WORD;
        // What has shown to be long is looked at in another way, which takes longer to begin.
        if at - start == BLOCK {
            at += plain_blocks(&bytes[at..], seen) * BLOCK;
        }
    }
    while let Some(byte) = bytes.get(at)
        && !is_special(*byte)
    {
        *seen |= u64::from(*byte);
        at += 1;
    }
    at
}

/// The eight bytes at `at` as a number; nothing if there are fewer.
#[inline]
pub(super) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk::<WORD>()?;
    Some(u64::from_le_bytes(*word))
}

/// How many blocks stand for themselves.
#[inline(never)]
fn plain_blocks(bytes: &[u8], seen: &mut u64) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let mut plain = 0;
    while let Some(block) = blocks.get(plain)
        && !has_special(block)
    {
        if !block.is_ascii() {
            *seen |= HIGHEST;
        }
        plain += 1;
    }
    plain
}

/// Marks the bytes of a word that do not stand for themselves by their highest bits. Marks above the lowest
/// one may be wrong: a subtraction borrows from the bytes above.
#[inline]
pub(super) fn special_in(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; WORD]);
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    // With this bit turned over the quote stands right behind the control characters, which stay what they are.
    let control_or_quote = below(word ^ (ONES * 2), 0x21);
    let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    (control_or_quote | backslash) & HIGHEST
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | ..0x20)
}

/// A fold without early exit, which the compiler turns into vector instructions.
fn has_special(block: &[u8; BLOCK]) -> bool {
    let special =
        |byte: u8| u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < 0x20);
    let found = block.iter().fold(0, |found, byte| found | special(*byte));
    found != 0
}
