//! Plain requests, which almost all are: a POST to the endpoint that came as a whole and is answered with one message.
//! They are read and answered here, in one read and one write. With whatever is not plain the connection goes to hyper
//! as it is, so that nothing unusual is decided here.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::pin,
    task::{Context, Poll},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::{Bytes, BytesMut};
use hyper::{
    HeaderMap, Method, Request, StatusCode, Uri,
    header::{CONNECTION, HeaderName, HeaderValue},
    http::response::Parts,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    ENDPOINT_PATH,
    limits::MAX_HEADERS,
    patient_stream::PatientStream,
    request_body::Content,
    response::{Response, ResponseBody},
};

/// How much is read at once. What is longer than that is not plain.
const READ_BYTES: usize = 8 * 1024;
/// With less room than this a buffer is not read into.
const LEAST_ROOM: usize = 2 * 1024;
/// How large an answer may be that is copied behind its head, so that both are one piece.
const COPY_BELOW: usize = 16 * 1024;
/// Room for the head of an answer.
const HEAD_BYTES: usize = 256;

/// Fields that mean something for the connection. What has one of them is not plain.
const SPECIAL: [&str; 6] = [
    "connection",
    "expect",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A connection as long as its requests are plain.
pub(super) struct PlainConnection {
    stream: PatientStream,
    /// What was read and is not answered.
    read: BytesMut,
    date: Date,
}

/// What comes next on a connection.
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is what almost always comes"
)]
pub(super) enum Next {
    /// A request that is plain, and how many bytes it has.
    Plain(Request<Content>, usize),
    Other,
    Over,
}

/// What became of an answer.
pub(super) enum Answered {
    Written,
    /// It is more than one message, and nothing of it was written.
    NotPlain(Box<Response>),
    /// The client has gone away.
    Gone,
}

impl Answered {
    fn other(head: Parts, body: ResponseBody) -> Self {
        Self::NotPlain(Box::new(Response::from_parts(head, body)))
    }
}

impl PlainConnection {
    pub(super) fn new(stream: PatientStream) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            date: Date::default(),
        }
    }

    /// The next request. Cancel-safe.
    pub(super) async fn next(&mut self) -> Next {
        if self.read.is_empty() {
            match poll_fn(|context| self.poll_read(context)).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Next::Over,
            }
        }
        match read(&self.read) {
            Some((request, length)) => Next::Plain(request, length),
            None => Next::Other,
        }
    }

    /// What comes of a request, unless its client goes away before.
    pub(super) async fn wait<T>(&mut self, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = pin!(answer);
        let mut listens = true;
        poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            while listens {
                match self.poll_read(context) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(None),
                    // The next request, which has time.
                    Poll::Ready(Ok(_)) => listens = false,
                    Poll::Pending => break,
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Answers the request of `length` bytes that was read.
    pub(super) async fn answer(&mut self, response: Response, length: usize) -> Answered {
        let (head, body) = response.into_parts();
        let bare = matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
        let plain = !bare && !head.headers.contains_key(CONNECTION);
        let parts = match body.into_whole() {
            Ok(parts) if plain => parts,
            Ok(parts) => return Answered::other(head, ResponseBody::parts(parts)),
            Err(body) => return Answered::other(head, body),
        };
        let parts = parts.as_parts();
        let _ = self.read.split_to(length);
        let first = self.date.head(head.status, &head.headers, parts);
        match self.write(first, parts).await {
            Ok(()) => Answered::Written,
            Err(_) => Answered::Gone,
        }
    }

    /// The connection, with all that was read and is not answered.
    pub(super) fn into_stream(self) -> PatientStream {
        self.stream.with_unread(self.read.freeze())
    }

    async fn write(&mut self, mut first: Vec<u8>, parts: &[Bytes; 3]) -> io::Result<()> {
        let length: usize = parts.iter().map(Bytes::len).sum();
        if length < COPY_BELOW {
            for part in parts {
                first.extend_from_slice(part);
            }
            return self.stream.write_all(&first).await;
        }
        let [head, body, end] = parts;
        let mut pieces = [&first[..], head, body, end].map(IoSlice::new);
        let mut left = &mut pieces[..];
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match self.stream.write_vectored(left).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => IoSlice::advance_slices(&mut left, written),
            }
        }
        Ok(())
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.read.capacity() - self.read.len() < LEAST_ROOM {
            self.read.reserve(READ_BYTES);
        }
        let reading = pin!(self.stream.read_buf(&mut self.read));
        reading.poll(context)
    }
}

/// The request at the beginning of what was read, and how long it is, if it is plain.
fn read(bytes: &[u8]) -> Option<(Request<Content>, usize)> {
    let mut found = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, &mut found).ok()?;
    let httparse::Status::Complete(head) = parsed else {
        return None;
    };
    let is_plain = request.method == Some("POST")
        && request.path == Some(ENDPOINT_PATH)
        && request.version == Some(1);
    if !is_plain {
        return None;
    }
    let mut headers = HeaderMap::with_capacity(request.headers.len());
    let mut length = None;
    for field in &*request.headers {
        if SPECIAL.iter().any(|it| field.name.eq_ignore_ascii_case(it)) {
            return None;
        }
        if field.name.eq_ignore_ascii_case("content-length")
            && length.replace(number(field.value)?).is_some()
        {
            return None;
        }
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    let body = bytes.get(head..)?.get(..length?)?;
    let mut request = Request::new(Content::Whole(Bytes::copy_from_slice(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(ENDPOINT_PATH);
    *request.headers_mut() = headers;
    Some((request, head + body.len()))
}

/// A number of few digits and nothing else.
fn number(digits: &[u8]) -> Option<usize> {
    let plain = (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| plain)?;
    text.parse().ok()
}

/// The date of answers, written once in a second.
#[derive(Default)]
struct Date {
    second: u64,
    text: String,
}

impl Date {
    /// The head of an answer.
    fn head(&mut self, status: StatusCode, headers: &HeaderMap, parts: &[Bytes; 3]) -> Vec<u8> {
        let length: usize = parts.iter().map(Bytes::len).sum();
        let room = if length < COPY_BELOW { length } else { 0 };
        let mut head = Vec::with_capacity(HEAD_BYTES + room);
        let reason = status.canonical_reason().unwrap_or_default();
        for part in ["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        for (name, value) in headers {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
        let length = length.to_string();
        let date = self.text();
        for part in ["content-length: ", &length, "\r\ndate: ", date, "\r\n\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        head
    }

    fn text(&mut self) -> &str {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let second = now.unwrap_or_default().as_secs();
        if second != self.second {
            self.second = second;
            self.text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_plain_is_read() {
        let request = |head: &str, body: &str| {
            format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n")).into_bytes()
        };
        let plain = "POST /mcp HTTP/1.1\nHost: x\nContent-Length: 4";
        let (read_request, length) = read(&request(plain, "{}{}more")).unwrap();
        assert_eq!(length, request(plain, "{}{}").len());
        assert_eq!(read_request.uri().path(), ENDPOINT_PATH);
        assert_eq!(read_request.headers()["host"], "x");
        let Content::Whole(body) = read_request.body() else {
            panic!("it is not coming");
        };
        assert_eq!(body, "{}{}");
        for (head, body) in [
            (plain, "{}{"),
            ("POST /mcp HTTP/1.0\nHost: x\nContent-Length: 4", "{}{}"),
            ("POST /mcp?x HTTP/1.1\nHost: x\nContent-Length: 4", "{}{}"),
            (
                "POST http://x/mcp HTTP/1.1\nHost: x\nContent-Length: 4",
                "{}{}",
            ),
            ("GET /mcp HTTP/1.1\nHost: x\nContent-Length: 4", "{}{}"),
            ("POST /mcp HTTP/1.1\nHost: x", ""),
            (
                "POST /mcp HTTP/1.1\nContent-Length: 4\ncontent-length: 4",
                "{}{}",
            ),
            ("POST /mcp HTTP/1.1\nContent-Length: +4", "{}{}"),
            ("POST /mcp HTTP/1.1\nContent-Length: 4, 4", "{}{}"),
            (
                "POST /mcp HTTP/1.1\nContent-Length: 4\nTransfer-Encoding: chunked",
                "{}{}",
            ),
            (
                "POST /mcp HTTP/1.1\nContent-Length: 4\nExpect: 100-continue",
                "{}{}",
            ),
            (
                "POST /mcp HTTP/1.1\nContent-Length: 4\nConnection: close",
                "{}{}",
            ),
            (
                "POST /mcp HTTP/1.1\nContent-Length: 4\nUpgrade: h2c",
                "{}{}",
            ),
            ("POST /mcp HTTP/1.1\nContent-Length: 4\nX : y", "{}{}"),
            ("POST /mcp HTTP/1.1\nContent-Length: 4\nX: y\n z", "{}{}"),
        ] {
            assert!(read(&request(head, body)).is_none(), "{head:?}");
        }
        let whole = request(plain, "{}{}");
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_none(), "{end}");
        }
    }
}
