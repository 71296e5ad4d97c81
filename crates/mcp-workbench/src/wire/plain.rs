//! How far the text of a string stands for itself, looked at many bytes at a time.

use wide::u8x16;

/// So many bytes are looked at as one number.
pub(super) const WORD: usize = 8;
/// The highest bit of each.
pub(super) const HIGHEST: u64 = u64::from_le_bytes([0x80; WORD]);
/// So many bytes are looked at together, wherever there are as many.
const BLOCK: usize = 16;

/// How many bytes of a string stand for themselves: up to a quote, a backslash or a control character.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    plain_end(bytes, 0, &mut 0)
}

/// Where the bytes from `at` on no longer stand for themselves. Whatever is looked at is put into `seen`.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize, seen: &mut u64) -> usize {
    while let Some(block) = { bytes.get(at..) }.and_then(<[u8]>::first_chunk::<BLOCK>) {
        let block = u8x16::new(*block);
        // The highest bit of each byte becomes a bit.
        *seen |= u64::from(block.to_bitmask() != 0) << 63;
        let found = special_in_block(block);
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += BLOCK;
    }
    while let Some(byte) = bytes.get(at)
        && !is_special(*byte)
    {
        *seen |= u64::from(*byte);
        at += 1;
    }
    at
}

/// A bit for each byte of a block that does not stand for itself.
#[inline]
fn special_in_block(block: u8x16) -> u32 {
    let is = |byte: u8| block.simd_eq(u8x16::splat(byte));
    let last_control = u8x16::splat(0x1f);
    let is_control = block.max(last_control).simd_eq(last_control);
    (is(b'"') | is(b'\\') | is_control).to_bitmask()
}

/// The eight bytes at `at` as a number; nothing if there are fewer.
#[inline]
pub(super) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk::<WORD>()?;
    Some(u64::from_le_bytes(*word))
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
