//! Blocks of bytes, with a bit for each byte that a scan has to look at.

use wide::u8x16;

/// The number of bytes in a vector.
pub(crate) const SHORT: usize = 16;
/// The number of bytes in a long block: one bit each in a `u64`.
pub(crate) const LONG: usize = 64;

/// Returns the number of bytes before the first quote, backslash or control character.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = ShortBlock::at(bytes, at) {
        if block.special != 0 {
            return at + block.special.trailing_zeros() as usize;
        }
        at += SHORT;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
    let rest = &bytes[at..];
    at + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Returns the length of the plain text in front, in whole long blocks: there is no quote, backslash or control character
/// in it. Also returns a number that is not 0 if a byte of it is not ASCII. One mask per block is enough here.
#[inline(never)]
pub(crate) fn plain_blocks(bytes: &[u8]) -> (usize, u32) {
    let (blocks, _) = bytes.as_chunks::<LONG>();
    let mut high = u8x16::splat(0);
    let mut length = 0;
    for block in blocks {
        let mut special_bytes = u8x16::splat(0);
        let mut joined = high;
        for vector in block.as_chunks().0 {
            let vector = u8x16::new(*vector);
            special_bytes |= special(vector);
            joined |= vector;
        }
        if special_bytes.to_bitmask() != 0 {
            break;
        }
        high = joined;
        length += LONG;
    }
    (length, high.to_bitmask())
}

/// A block for short strings.
pub(crate) struct ShortBlock {
    /// Set for quotes, backslashes and control characters.
    pub(crate) special: u32,
    /// Set for bytes that are not ASCII.
    pub(crate) high: u32,
}

impl ShortBlock {
    /// Returns the block at `at`, or `None` if there are fewer bytes.
    #[inline]
    pub(crate) fn at(text: &[u8], at: usize) -> Option<Self> {
        let bytes = text.get(at..)?.first_chunk()?;
        Some(Self::of(bytes))
    }

    /// Returns the block of the last bytes from `at` on, if they are fewer than a block. It is read so that it ends with the
    /// text, which needs no copy; `None` if the text is too short for that.
    #[inline]
    pub(crate) fn last(text: &[u8], at: usize) -> Option<Self> {
        let missing = (at + SHORT).checked_sub(text.len())?;
        if missing >= SHORT {
            return None;
        }
        // The bytes before `at` are the lowest bits.
        let Self { special, high } = Self::of(text.last_chunk()?);
        Some(Self {
            special: special >> missing,
            high: high >> missing,
        })
    }

    #[inline]
    fn of(bytes: &[u8; SHORT]) -> Self {
        let block = u8x16::new(*bytes);
        Self {
            special: special(block).to_bitmask(),
            // The highest bit of each byte, which is set exactly if the byte is not ASCII.
            high: block.to_bitmask(),
        }
    }
}

/// A block for the middle of long strings.
#[derive(Clone, Copy)]
pub(crate) struct LongBlock<'a> {
    bytes: &'a [u8; LONG],
    /// The number of bytes of the block before the requested part.
    skipped: u32,
}

impl<'a> LongBlock<'a> {
    /// Returns the block at `at` of a text that has at least one block. Masks are 0 beyond the end of the text.
    #[inline]
    pub(crate) fn at(text: &'a [u8], at: usize) -> Option<Self> {
        let rest = text.get(at..)?;
        if let Some(bytes) = rest.first_chunk() {
            return Some(Self { bytes, skipped: 0 });
        }
        if rest.is_empty() {
            return None;
        }
        // The last block ends with the text, so that no byte has to be copied.
        #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
        let skipped = (LONG - rest.len()) as u32;
        let bytes = text.last_chunk()?;
        Some(Self { bytes, skipped })
    }

    /// Returns a number that is not 0 if there is a byte that is not ASCII.
    #[inline]
    pub(crate) fn high(self) -> u32 {
        self.any(|it| it)
    }

    /// Returns the bits of control characters. Almost no block has one.
    #[inline]
    pub(crate) fn controls(self) -> u64 {
        if self.any(control) == 0 {
            return 0;
        }
        self.mask(control)
    }

    /// Returns the bits of a byte.
    #[inline]
    pub(crate) fn positions(self, byte: u8) -> u64 {
        self.mask(|it| equal(it, byte))
    }

    #[inline]
    fn any(self, test: impl Fn(u8x16) -> u8x16) -> u32 {
        // The results are joined first, so that one mask is made for four vectors.
        let first = test(self.vector(0)) | test(self.vector(1));
        let second = test(self.vector(2)) | test(self.vector(3));
        (first | second).to_bitmask()
    }

    #[inline]
    fn mask(self, test: impl Fn(u8x16) -> u8x16) -> u64 {
        let bits = |index| u64::from(test(self.vector(index)).to_bitmask());
        // The bytes before the requested part are the lowest bits.
        (bits(0) | bits(1) << 16 | bits(2) << 32 | bits(3) << 48) >> self.skipped
    }

    #[inline]
    fn vector(self, index: usize) -> u8x16 {
        let (vectors, _) = self.bytes.as_chunks();
        u8x16::new(vectors[index])
    }
}

#[inline]
fn equal(vector: u8x16, byte: u8) -> u8x16 {
    vector.simd_eq(u8x16::splat(byte))
}

/// Returns the quotes, backslashes and control characters.
#[inline]
fn special(vector: u8x16) -> u8x16 {
    equal(vector, b'"') | equal(vector, b'\\') | control(vector)
}

#[inline]
fn control(vector: u8x16) -> u8x16 {
    // Vectors have no unsigned comparison. The greater of a byte and 0x1F is 0x1F only for control characters.
    let last = u8x16::splat(0x1f);
    vector.max(last).simd_eq(last)
}
