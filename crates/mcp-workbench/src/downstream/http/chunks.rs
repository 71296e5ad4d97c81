//! A body in chunks, each with its size before it: where the bytes of the body stand in what comes.

use super::lane::LaneError;

/// How long the line of a size may be, with what is said behind it, and how long everything after the last chunk.
const MAX_LINE_BYTES: usize = 4 * 1024;
const MAX_TRAILER_BYTES: usize = 16 * 1024;

/// How far a body in chunks was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    /// The line with the size of the next chunk comes next.
    Size,
    /// So many bytes of a chunk.
    Data(u64),
    /// The line end behind a chunk.
    DataEnd,
    /// Fields behind the last chunk, of which so many bytes were read.
    Trailer(usize),
    Over,
}

/// What to do with the bytes that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many of them are not part of the body.
    Skip(usize),
    /// So many of them are.
    Take(usize),
    Wait,
}

impl Chunks {
    /// Looks at what has come. The caller removes as many bytes as it is told.
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Step, LaneError> {
        match *self {
            Self::Size => {
                let Some(line) = line(bytes, MAX_LINE_BYTES)? else {
                    return Ok(Step::Wait);
                };
                let size = size(line).ok_or(BROKEN)?;
                *self = if size == 0 {
                    Self::Trailer(0)
                } else {
                    Self::Data(size)
                };
                Ok(Step::Skip(line.len() + 2))
            }
            Self::Data(left) => {
                if bytes.is_empty() {
                    return Ok(Step::Wait);
                }
                let here = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
                let left = left - here as u64;
                *self = if left == 0 {
                    Self::DataEnd
                } else {
                    Self::Data(left)
                };
                Ok(Step::Take(here))
            }
            Self::DataEnd => match bytes {
                [b'\r', b'\n', ..] => {
                    *self = Self::Size;
                    Ok(Step::Skip(2))
                }
                [] | [b'\r'] => Ok(Step::Wait),
                _ => Err(BROKEN),
            },
            Self::Trailer(before) => {
                let Some(line) = line(bytes, MAX_TRAILER_BYTES - before)? else {
                    return Ok(Step::Wait);
                };
                let length = line.len() + 2;
                *self = match line {
                    [] => Self::Over,
                    _ => Self::Trailer((before + length).min(MAX_TRAILER_BYTES)),
                };
                Ok(Step::Skip(length))
            }
            Self::Over => Ok(Step::Wait),
        }
    }
}

const BROKEN: LaneError = LaneError::Unclear("the size of a chunk");

/// The first line, without its end.
fn line(bytes: &[u8], limit: usize) -> Result<Option<&[u8]>, LaneError> {
    match memchr::memchr(b'\n', bytes) {
        Some(end) if end <= limit => match bytes[..end].strip_suffix(b"\r") {
            Some(line) => Ok(Some(line)),
            None => Err(BROKEN),
        },
        None if bytes.len() <= limit => Ok(None),
        _ => Err(BROKEN),
    }
}

/// The size that a line says, whatever is said behind it.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let (digits, rest) = line.split_at(digits.count());
    if digits.is_empty() || !matches!(rest.trim_ascii_start(), [] | [b';', ..]) {
        return None;
    }
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// The body of a text that comes in pieces of `piece` bytes, and what is left behind it.
    fn body(text: &str, piece: usize) -> Result<(String, String), LaneError> {
        let (mut body, mut here) = (Vec::new(), Vec::new());
        let mut pieces = text.as_bytes().chunks(piece);
        let mut chunks = Chunks::Size;
        while chunks != Chunks::Over {
            match chunks.step(&here)? {
                Step::Skip(count) => drop(here.drain(..count)),
                Step::Take(count) => body.extend(here.drain(..count)),
                Step::Wait => match pieces.next() {
                    Some(more) => here.extend_from_slice(more),
                    None => return Ok((String::from_utf8(body).unwrap(), "…".to_owned())),
                },
            }
        }
        here.extend(pieces.flatten());
        Ok((
            String::from_utf8(body).unwrap(),
            String::from_utf8(here).unwrap(),
        ))
    }

    #[test]
    fn a_body_is_the_same_however_it_comes() {
        for (text, expected) in [
            ("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nrest", ("abcde", "rest")),
            (
                "A;name=\"v\"\r\n0123456789\r\n000\r\nX: y\r\nZ: z\r\n\r\n",
                ("0123456789", ""),
            ),
            ("2 \r\nab\r\n0\r\n\r\n", ("ab", "")),
            ("0\r\n\r\n", ("", "")),
            ("5\r\nab", ("ab", "…")),
        ] {
            for piece in 1..=text.len() {
                let (body, rest) = body(text, piece).unwrap();
                assert_eq!(
                    (body.as_str(), rest.as_str()),
                    expected,
                    "{text:?}, {piece}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        let long = |count: usize, text: &str| format!("{text}{}", "x".repeat(count));
        for text in [
            "x\r\n",
            "\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            "1 1\r\n",
            "1\nab",
            "2\r\nabc\r\n",
            "10000000000000000\r\n",
            &long(MAX_LINE_BYTES, "1;"),
            &long(MAX_TRAILER_BYTES, "0\r\nX"),
            &("0\r\n".to_owned() + &"X: y\r\n".repeat(MAX_TRAILER_BYTES / 5)),
        ] {
            for piece in [1, text.len()] {
                assert!(body(text, piece).is_err(), "{text:.40}, {piece}");
            }
        }
    }
}
