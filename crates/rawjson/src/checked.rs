//! The check of a long string while its text still arrives, so that each byte is looked at once, and while it is in the
//! processor's cache.

use crate::{
    blocks::{LONG, LongBlock},
    scan::{Flaws, Scanner},
    string::LongString,
};

/// The longest part of an escape behind the end of its block: `\ud83d\ude00` from the second byte on.
const LOOKAHEAD: usize = 16;

/// The part of a long string that was checked before the rest of its text was there. A [`Scanner`] of the whole text
/// continues behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedPart {
    /// The position at which the scan of the long string begins.
    pub(crate) start: usize,
    /// The end of the last block that was checked. The string does not end before it.
    pub(crate) end: usize,
    pub(crate) string: LongString,
    /// False if the block at `end` has the end of the string, a control character or a fault.
    is_open: bool,
    pub(crate) special: bool,
    pub(crate) flaws: Flaws,
    pub(crate) high: u32,
}

impl CheckedPart {
    /// Finds the long string that the beginning of a text is cut in.
    pub fn begin(text: &[u8]) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let at = scanner.blanks(0);
        scanner.value(at, 0).err()?;
        let start = scanner.unfinished?;
        // Nearer to the end, a scan of the whole text may enter the string at another byte.
        (start + LONG <= text.len()).then(|| Self {
            start,
            end: start,
            string: LongString::default(),
            is_open: true,
            special: false,
            flaws: Flaws::default(),
            high: 0,
        })
    }

    /// Checks the blocks that have arrived since, of a text that begins as before. Returns the position before which there
    /// is neither the end of the string nor a control character.
    pub fn extend(&mut self, text: &[u8]) -> usize {
        let mut scanner = Scanner::new(text);
        // In locals, because in memory each block would wait for the store of the one before.
        let (mut string, mut end) = (self.string, self.end);
        while self.is_open && end + LONG + LOOKAHEAD <= text.len() {
            let Some(block) = LongBlock::at(text, end) else {
                break;
            };
            let before = string;
            match string.pass(&mut scanner, end, block) {
                Ok(None) if !scanner.flaws.raw_control => {
                    end = string.skip_plain(&mut scanner, end + LONG);
                }
                _ => {
                    string = before;
                    self.is_open = false;
                }
            }
        }
        (self.string, self.end) = (string, end);
        // The block of a control character is scanned again, and may even be behind the end of the line.
        self.flaws.lone_surrogate |= scanner.flaws.lone_surrogate;
        self.special |= scanner.special;
        self.high |= scanner.high;
        self.end
    }
}
