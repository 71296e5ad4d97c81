//! How far the text of a string stands for itself, looked at many bytes at a time.

use wide::u8x16;

/// So many bytes are looked at together, wherever there are as many.
pub(crate) const BLOCK: usize = 16;

/// How many bytes of a string stand for themselves: up to a quote, a backslash or a control character.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        let special = Block::at(bytes, at).special;
        if special != 0 {
            return at + special.trailing_zeros() as usize;
        }
        at += BLOCK;
    }
    bytes.len()
}

/// A block of bytes, with a bit for each.
pub(crate) struct Block {
    /// Set for what does not stand for itself in a string.
    pub(crate) special: u32,
    /// Set for what is no ASCII.
    pub(crate) high: u32,
}

impl Block {
    /// The block at `at`; nothing if there are fewer bytes.
    #[inline]
    pub(crate) fn whole(bytes: &[u8], at: usize) -> Option<Self> {
        let block = bytes.get(at..)?.first_chunk::<BLOCK>()?;
        Some(Self::of(*block))
    }

    /// The block at `at`. Behind the end there are spaces, which stand for themselves.
    pub(crate) fn at(bytes: &[u8], at: usize) -> Self {
        Self::whole(bytes, at).unwrap_or_else(|| Self::last(bytes.get(at..).unwrap_or_default()))
    }

    #[inline(never)]
    fn last(rest: &[u8]) -> Self {
        let mut block = [b' '; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        Self::of(block)
    }

    #[inline]
    fn of(bytes: [u8; BLOCK]) -> Self {
        let block = u8x16::new(bytes);
        let is = |byte: u8| block.simd_eq(u8x16::splat(byte));
        let last_control = u8x16::splat(0x1f);
        let is_control = block.max(last_control).simd_eq(last_control);
        Self {
            special: (is(b'"') | is(b'\\') | is_control).to_bitmask(),
            high: block.to_bitmask(),
        }
    }
}
