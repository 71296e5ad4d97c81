//! Long strings, 64 bytes at a time. Quotes, escapes and control characters are bits of masks, so a block costs about the same
//! whether it has an escape or twenty.

use crate::{
    blocks::{LONG, LongBlock, plain_blocks},
    scan::{ScanFault, Scanner, hex4, low_surrogate_follows},
};

/// After so many plain blocks more are looked for. Text with an escape in each line has few in a row, and a block that is
/// not plain is read twice.
const PLAIN_BLOCKS: u32 = 2;

/// The state between two blocks of a string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LongString {
    /// 1 if the first byte of the next block is escaped.
    carry: u64,
    /// The position of the `u` of the low surrogate that belongs to the last high one.
    low_surrogate: usize,
    /// The number of plain blocks in a row: without quote, backslash and control character.
    plain_blocks: u32,
}

impl LongString {
    /// Skips the rest of a string, including its quote. `at` is not escaped.
    #[inline(never)]
    pub(crate) fn scan(
        mut self,
        scanner: &mut Scanner<'_>,
        mut at: usize,
    ) -> Result<usize, ScanFault> {
        let bytes = scanner.bytes();
        let start = at;
        if let Some(part) = scanner.checked.filter(|part| part.start == at) {
            (self, at) = (part.string, part.end);
            scanner.special |= part.special;
            scanner.flaws.lone_surrogate |= part.flaws.lone_surrogate;
            scanner.high |= part.high;
        }
        let padded;
        let mut text = bytes;
        // The last block of a text is read so that it ends with the text. A text that is shorter than a block is
        // padded.
        if bytes.len() < LONG {
            padded = padded_to_block(bytes);
            text = &padded;
        }
        while let Some(block) = LongBlock::at(text, at) {
            if let Some(end) = self.pass(scanner, at, block)? {
                return Ok(end);
            }
            at = self.skip_plain(scanner, at + LONG);
        }
        scanner.unfinished = Some(start);
        Err(ScanFault::syntax(bytes.len()))
    }

    /// Skips the plain text at `at`, if the blocks before it were plain. Returns its end.
    #[inline]
    pub(crate) fn skip_plain(&self, scanner: &mut Scanner<'_>, at: usize) -> usize {
        if self.plain_blocks < PLAIN_BLOCKS {
            return at;
        }
        let rest = scanner.bytes().get(at..).unwrap_or_default();
        let (length, high) = plain_blocks(rest);
        scanner.high |= high;
        at + length
    }

    /// Skips a block. Returns the end of the string if it is in the block.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        scanner: &mut Scanner<'_>,
        at: usize,
        block: LongBlock<'_>,
    ) -> Result<Option<usize>, ScanFault> {
        scanner.high |= block.high();
        let quotes = block.positions(b'"');
        let backslashes = block.positions(b'\\');
        let controls = block.controls();
        let is_plain = quotes | backslashes | controls | self.carry == 0;
        self.plain_blocks = if is_plain { self.plain_blocks + 1 } else { 0 };
        let mut escaped = 0;
        if backslashes | self.carry != 0 {
            escaped = self.escaped(backslashes);
        }
        let ends = quotes & !escaped;
        // All bits below the first end; all bits if there is none.
        let inside = !ends & ends.wrapping_sub(1);
        let escaped = escaped & inside;
        if escaped != 0 {
            scanner.special = true;
            // These three are always valid, and nearly all escapes.
            let usual = quotes | backslashes | block.positions(b'n');
            if escaped & !usual != 0 {
                self.check_escapes(scanner, at, escaped & !usual)?;
            }
        }
        if controls & inside != 0 {
            scanner.special = true;
            scanner.flaws.raw_control = true;
        }
        Ok((ends != 0).then(|| at + ends.trailing_zeros() as usize + 1))
    }

    /// Returns the bits of escaped bytes. In a run of backslashes each second one is escaped; if their number is odd, the
    /// last one escapes the byte after the run.
    #[inline]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        // An escaped backslash begins nothing.
        let backslashes = backslashes & !self.carry;
        let behind = backslashes << 1 | self.carry;
        // Adding the first bit of a run to the run carries into the bit after it.
        let odd_starts = backslashes & !EVEN & !behind;
        let (sums, overflow) = odd_starts.overflowing_add(backslashes);
        self.carry = u64::from(overflow);
        // A run that starts at an even bit keeps its bits in the sum, and its odd bits are the escaped ones. A run
        // that starts at an odd bit has lost them to the carry, and its even bits are the escaped ones.
        (EVEN ^ (sums << 1)) & behind
    }

    /// Checks the escapes other than `\"`, `\\` and `\n`, which are almost all.
    #[inline(never)]
    fn check_escapes(
        &mut self,
        scanner: &mut Scanner<'_>,
        block: usize,
        mut escaped: u64,
    ) -> Result<(), ScanFault> {
        while escaped != 0 {
            let at = block + escaped.trailing_zeros() as usize;
            // Clears the lowest bit.
            escaped &= escaped - 1;
            match scanner.peek(at) {
                b'/' | b'b' | b'f' | b'r' | b't' => {}
                b'u' => self.check_unicode(scanner, at)?,
                _ => return Err(ScanFault::syntax(at)),
            }
        }
        Ok(())
    }

    /// Checks the escape whose `u` is at `at`. A surrogate without its partner is recorded.
    #[inline]
    fn check_unicode(&mut self, scanner: &mut Scanner<'_>, at: usize) -> Result<(), ScanFault> {
        let bytes = scanner.bytes();
        match hex4(bytes, at + 1).ok_or_else(|| ScanFault::syntax(at))? {
            0xD800..=0xDBFF if low_surrogate_follows(bytes, at + 5) => self.low_surrogate = at + 6,
            0xDC00..=0xDFFF if at == self.low_surrogate => {}
            0xD800..=0xDFFF => scanner.flaws.lone_surrogate = true,
            _ => {}
        }
        Ok(())
    }
}

/// Returns a short text padded with spaces, which neither end a string nor need an escape.
#[inline(never)]
fn padded_to_block(text: &[u8]) -> [u8; LONG] {
    let mut padded = [b' '; LONG];
    padded[..text.len()].copy_from_slice(text);
    padded
}
