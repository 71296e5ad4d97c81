//! The text of a frame that is written in one piece, although a long body is not copied.

use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// The text of a frame, or what is left of it. hyper takes and writes all parts together, so the end of a long message is
/// not a write of its own.
#[derive(Debug, Default)]
pub(crate) struct FrameText {
    /// The parts in their order. Those that were written are empty.
    parts: [Bytes; 3],
}

impl FrameText {
    pub(super) fn new(parts: [Bytes; 3]) -> Self {
        Self { parts }
    }
}

impl<T: Into<Bytes>> From<T> for FrameText {
    fn from(text: T) -> Self {
        Self::new([text.into(), Bytes::new(), Bytes::new()])
    }
}

impl Buf for FrameText {
    fn remaining(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    fn chunk(&self) -> &[u8] {
        let part = self.parts.iter().find(|part| !part.is_empty());
        part.map_or(&[], |part| part)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let parts = self.parts.iter().filter(|part| !part.is_empty());
        let filled = slices.iter_mut().zip(parts);
        filled
            .map(|(slice, part)| *slice = IoSlice::new(part))
            .count()
    }

    fn advance(&mut self, mut count: usize) {
        for part in &mut self.parts {
            let written = count.min(part.len());
            part.advance(written);
            count -= written;
        }
        assert_eq!(count, 0, "more was written than there is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_offered_together_and_written_in_their_order() {
        let text = || {
            let parts = ["head", "", "end"].map(|part| Bytes::from_static(part.as_bytes()));
            FrameText::new(parts)
        };
        for written in 0..=7 {
            let mut text = text();
            text.advance(written);
            assert_eq!(text.remaining(), 7 - written);
            let mut slices = [IoSlice::new(&[]); 4];
            let filled = text.chunks_vectored(&mut slices);
            let slices: Vec<&[u8]> = slices[..filled].iter().map(|slice| &**slice).collect();
            assert_eq!(slices.concat(), b"headend"[written..]);
            assert_eq!(slices.first().copied().unwrap_or_default(), text.chunk());
        }
        assert_eq!(text().chunks_vectored(&mut [IoSlice::new(&[])]), 1);
    }
}
