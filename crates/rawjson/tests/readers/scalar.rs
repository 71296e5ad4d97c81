//! The grammar of JSON, read one byte at a time: slow, short, and what the scanner is compared with.

/// A text that is one value, as a scan describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// The place of the value.
    pub(crate) value: std::ops::Range<usize>,
    /// Set if a string has a surrogate escape without its partner.
    pub(crate) lone_surrogate: bool,
    /// The places of the members of an object, or of the elements of an array.
    pub(crate) children: Vec<std::ops::Range<usize>>,
}

/// Reads a text. The error is the place where the grammar is broken, or nothing if the value is too deep.
pub(crate) fn read(text: &[u8], max_depth: usize) -> Result<Scalar, Option<usize>> {
    let mut reader = Reader {
        text,
        at: 0,
        lone_surrogate: false,
        raw_control: false,
        max_depth,
        children: Vec::new(),
    };
    reader.blanks();
    let start = reader.at;
    reader.value(0)?;
    let value = start..reader.at;
    reader.blanks();
    if reader.at < text.len() || reader.raw_control {
        return Err(Some(reader.at));
    }
    if let Err(error) = std::str::from_utf8(text) {
        return Err(Some(error.valid_up_to()));
    }
    Ok(Scalar {
        value,
        lone_surrogate: reader.lone_surrogate,
        children: reader.children,
    })
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    lone_surrogate: bool,
    raw_control: bool,
    max_depth: usize,
    children: Vec<std::ops::Range<usize>>,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Option<usize>> {
        if self.peek() != byte {
            return Err(Some(self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<(), Option<usize>> {
        match self.peek() {
            b'"' => self.string(),
            b'{' => self.container(depth, b'}'),
            b'[' => self.container(depth, b']'),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => Err(Some(self.at)),
        }
    }

    fn container(&mut self, depth: usize, end: u8) -> Result<(), Option<usize>> {
        if depth == self.max_depth {
            return Err(None);
        }
        self.at += 1;
        self.blanks();
        if self.peek() == end {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.blanks();
            if end == b'}' {
                self.string()?;
                self.blanks();
                self.expect(b':')?;
                self.blanks();
            }
            let start = self.at;
            self.value(depth + 1)?;
            if depth == 0 {
                self.children.push(start..self.at);
            }
            self.blanks();
            if self.peek() != b',' {
                return self.expect(end);
            }
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result<(), Option<usize>> {
        self.expect(b'"')?;
        loop {
            let Some(byte) = self.text.get(self.at) else {
                return Err(Some(self.at));
            };
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                0..0x20 => self.raw_control = true,
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Result<(), Option<usize>> {
        match self.peek() {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => match self.unit(self.at + 1) {
                Some(0xD800..=0xDBFF) if self.has_low_surrogate(self.at + 5) => self.at += 11,
                Some(unit) => {
                    self.lone_surrogate |= (0xD800..=0xDFFF).contains(&unit);
                    self.at += 5;
                }
                None => return Err(Some(self.at)),
            },
            _ => return Err(Some(self.at)),
        }
        Ok(())
    }

    fn has_low_surrogate(&self, at: usize) -> bool {
        let is_escape = self.text.get(at..at + 2) == Some(b"\\u");
        is_escape && matches!(self.unit(at + 2), Some(0xDC00..=0xDFFF))
    }

    fn unit(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        let is_number = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok()?;
        is_number.then(|| u32::from_str_radix(digits, 16).ok())?
    }

    fn number(&mut self) -> Result<(), Option<usize>> {
        self.at += usize::from(self.peek() == b'-');
        if self.peek() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), b'+' | b'-'));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Option<usize>> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start {
            Err(Some(start))
        } else {
            Ok(())
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Option<usize>> {
        if !self.text[self.at..].starts_with(word) {
            return Err(Some(self.at));
        }
        self.at += word.len();
        Ok(())
    }
}
