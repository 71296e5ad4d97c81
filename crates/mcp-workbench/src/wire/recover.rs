//! Finds the id of a message that cannot be parsed as a whole because it is too large, too deep or broken. Its sender
//! must still get a response. Some senders write the id first and some last, so both ends are searched.

use rawjson::{Kind, RawJson, Scanner, unescape};

use super::message::RequestId;

/// The number of bytes at either end of a message that are searched for an id.
const REACH: usize = 4096;

/// Returns the id of the request that an invalid line answers. The line must look like a response, because some servers
/// log JSON with their own ids on the same stream.
pub(crate) fn recover_answer_id(line: &[u8]) -> Option<RequestId> {
    let head = &line[..line.len().min(REACH)];
    let tail = &line[line.len().saturating_sub(REACH)..];
    let has = |word: &str| {
        let found = |part: &[u8]| memchr::memmem::find(part, word.as_bytes()).is_some();
        found(head) || found(tail)
    };
    // The text is broken or cut, and may have lost its `result`.
    let is_answer = has("\"result\"") || has("\"error\"") || !has("\"method\"");
    let answers = has("\"jsonrpc\"") && is_answer;
    answers.then(|| recover_id(line))?
}

/// Returns the id of a complete message.
pub(crate) fn recover_id(message: &[u8]) -> Option<RequestId> {
    id_from_head(message).or_else(|| id_from_tail(message))
}

/// Returns the id of a message from its beginning.
pub(crate) fn id_from_head(head: &[u8]) -> Option<RequestId> {
    let head = &head[..head.len().min(REACH)];
    let mut scanner = Scanner::new(head);
    let mut at = scanner.blanks(0);
    at = scanner.expect(at, b'{').ok()?;
    loop {
        let (key, value, end) = member(&mut scanner, at)?;
        // A value that ends with the excerpt may continue after it.
        if end == head.len() {
            return None;
        }
        if key == "id" {
            return RequestId::from_json(value);
        }
        at = scanner.blanks(end);
        at = scanner.expect(at, b',').ok()?;
    }
}

/// Returns the id of a message from its end: a member `id` that only plain members and the end of the object follow.
pub(crate) fn id_from_tail(tail: &[u8]) -> Option<RequestId> {
    let tail = &tail[tail.len().saturating_sub(REACH)..];
    // From the end, because any other `id` is more likely to be one inside the result.
    memchr::memmem::rfind_iter(tail, b"\"id\"").find_map(|at| last_members(&tail[at..]))
}

fn last_members(text: &[u8]) -> Option<RequestId> {
    let mut scanner = Scanner::new(text);
    let (_, id, mut at) = member(&mut scanner, 0)?;
    loop {
        at = scanner.blanks(at);
        if scanner.peek(at) == b'}' {
            break;
        }
        at = scanner.expect(at, b',').ok()?;
        let (_, value, end) = member(&mut scanner, at)?;
        if matches!(value.kind(), Kind::Object | Kind::Array) {
            return None;
        }
        at = end;
    }
    // Behind an `id` that is nested in the result, a second brace follows.
    let end = scanner.blanks(at + 1);
    (end == text.len()).then(|| RequestId::from_json(id))?
}

/// Parses the member at `at`. Returns it with its end.
fn member(scanner: &mut Scanner<'_>, at: usize) -> Option<(String, RawJson, usize)> {
    let text = scanner.bytes();
    let key = scanner.blanks(at);
    let end = scanner.string(key).ok()?;
    let key = unescape(&text[key..end]).into_owned();
    let colon = scanner.blanks(end);
    let value = scanner.expect(colon, b':').ok()?;
    let value = scanner.blanks(value);
    let end = scanner.value(value, 0).ok()?;
    let value = text[value..end].to_vec();
    std::str::from_utf8(&value).ok()?;
    // The id is relayed as it is, and would break our response too.
    if scanner.flaws.raw_control {
        return None;
    }
    Some((key, RawJson::trusted(value.into()), end))
}

#[cfg(test)]
mod tests {
    use super::{id_from_head, id_from_tail, recover_answer_id, recover_id};

    #[test]
    fn an_id_is_found_only_at_either_end() {
        let cases: [(&str, Option<&str>, Option<&str>); 10] = [
            (r#"{"id":7,"result":{"#, Some("7"), None),
            (
                r#"{"jsonrpc":"2.0","id":"a","result":["#,
                Some("\"a\""),
                None,
            ),
            (
                r#"{"result":{"id":1},"jsonrpc":"2.0","id":7}"#,
                Some("7"),
                Some("7"),
            ),
            (r#"…"x"}]},"jsonrpc":"2.0","id":7}"#, None, Some("7")),
            (r#"…"x"}]},"id":7,"jsonrpc":"2.0"}"#, None, Some("7")),
            (r#"{"result":{"a":{"id":7"#, None, None),
            (r#"…{"id":7}}}"#, None, None),
            (r#"…"text":"\"id\":7}"}"#, None, None),
            (r#"{"id":7"#, None, None),
            (r#"{"id":null,"x":1}"#, None, None),
        ];
        for (text, head, tail) in cases {
            let name = |id: Option<super::RequestId>| id.map(|id| id.to_json().as_str().to_owned());
            assert_eq!(
                name(id_from_head(text.as_bytes())).as_deref(),
                head,
                "{text}"
            );
            assert_eq!(
                name(id_from_tail(text.as_bytes())).as_deref(),
                tail,
                "{text}"
            );
        }
    }

    #[test]
    fn text_that_is_not_an_answer_has_no_id() {
        let rows = [
            (r#"{"jsonrpc":"2.0","id":7,"result":[[["#, Some(7)),
            (r#"{"jsonrpc":"1.0","id":7,"error":{}}"#, Some(7)),
            (r#"{"jsonrpc":"2.0","id":7}"#, Some(7)),
            (r#"{"level":30,"id":7,"msg":"started"}"#, None),
            (r#"{"jsonrpc":"1.0","id":7,"method":"x"}"#, None),
        ];
        for (line, id) in rows {
            let found = recover_answer_id(line.as_bytes()).and_then(|id| id.as_u64());
            assert_eq!(found, id, "{line}");
        }
    }

    #[test]
    fn a_message_that_is_too_deep_still_has_its_id() {
        let deep = "[".repeat(1_000_000);
        let first = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{deep}"#);
        let last = format!(r#"{{"result":{deep},"id":4}}"#);
        assert_eq!(
            recover_id(first.as_bytes()).and_then(|id| id.as_u64()),
            Some(3)
        );
        assert_eq!(
            recover_id(last.as_bytes()).and_then(|id| id.as_u64()),
            Some(4)
        );
    }
}
