//! How far the text of a string stands for itself, looked at many bytes at a time.

use wide::u8x16;

/// So many bytes are looked at together, wherever there are as many.
pub(super) const BLOCK: usize = 16;

/// How many bytes of a string stand for themselves: up to a quote, a backslash or a control character.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    plain_end(bytes, 0, &mut 0)
}

/// Where the bytes from `at` on no longer stand for themselves. Whatever is looked at is put into `seen`.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize, seen: &mut u32) -> usize {
    while let Some(block) = block_at(bytes, at) {
        *seen |= block.high;
        if block.special != 0 {
            return at + block.special.trailing_zeros() as usize;
        }
        at += BLOCK;
    }
    while let Some(byte) = bytes.get(at)
        && !is_special(*byte)
    {
        *seen |= u32::from(byte & 0x80);
        at += 1;
    }
    at
}

/// A block of bytes, with a bit for each.
pub(super) struct Block {
    /// Set for what does not stand for itself in a string.
    pub(super) special: u32,
    /// Set for what is no ASCII.
    pub(super) high: u32,
}

/// The block at `at`; nothing if there are fewer bytes.
#[inline]
pub(super) fn block_at(bytes: &[u8], at: usize) -> Option<Block> {
    let block = u8x16::new(*bytes.get(at..)?.first_chunk::<BLOCK>()?);
    let is = |byte: u8| block.simd_eq(u8x16::splat(byte));
    let last_control = u8x16::splat(0x1f);
    let is_control = block.max(last_control).simd_eq(last_control);
    Some(Block {
        special: (is(b'"') | is(b'\\') | is_control).to_bitmask(),
        high: block.to_bitmask(),
    })
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | ..0x20)
}
