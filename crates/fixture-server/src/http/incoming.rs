//! Parses HTTP/1.1 requests.

use std::{collections::BTreeMap, io::BufRead};

#[derive(Debug)]
pub(super) struct Incoming {
    /// `POST` and the like.
    pub(super) verb: String,
    pub(super) path: String,
    /// The headers, their names in small letters.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Incoming {
    /// Reads the next request of a connection. Returns `None` at its end.
    pub(super) fn read(reader: &mut impl BufRead) -> Option<Self> {
        let first = line(reader)?;
        let mut words = first.split(' ');
        let (verb, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = BTreeMap::new();
        loop {
            let line = line(reader)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers
            .get("content-length")
            .and_then(|it| it.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some(Self {
            verb,
            path,
            headers,
            // One line, as over stdio: it is written to the journal and perhaps into an event.
            body: String::from_utf8(body).ok()?.trim_end().to_owned(),
        })
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Reads the next line. Returns `None` at the end.
fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = reader.read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}
