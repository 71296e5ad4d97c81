//! The members of a `tools/call` that every call needs, found in the same pass that checks the message: those of its
//! parameters, of its `_meta`, and inside its arguments those of `use_tool`. What is written in an unusual way, with
//! escapes or duplicate keys, has no outline and is read the long way.

use super::{
    json::{RawJson, walk_members},
    scan::{ScanError, Scanner},
};

/// A member that an outline has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlined {
    /// `name`
    Name,
    /// `arguments`
    Arguments,
    /// `_meta`
    Meta,
    /// `inputResponses`
    InputResponses,
    /// `requestState`
    RequestState,
    /// `tool` in the arguments.
    UsedTool,
    /// `arguments` in the arguments.
    UsedArguments,
    /// `toolbox` of the tool in the arguments.
    UsedToolbox,
    /// `server` of the tool in the arguments.
    UsedServer,
    /// `tool` of the tool in the arguments.
    UsedName,
    /// The client's token for progress.
    ProgressToken,
    /// The revision that the request is written in.
    Version,
    /// The client's capabilities.
    Capabilities,
    /// The client's program.
    ClientInfo,
    /// The least urgent log messages that the client wants.
    LogLevel,
}

const MEMBERS: usize = Outlined::LogLevel as usize + 1;

/// An object that an outline goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The parameters.
    Params,
    /// `_meta`
    Meta,
    /// The arguments.
    Arguments,
    /// The tool in the arguments.
    Tool,
}

/// Where the members of a call are, counted from the beginning of its parameters. A message is at most 16 MiB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallOutline {
    spans: [(u32, u32); MEMBERS],
    /// For each level, whether it has members that the outline does not know.
    has_others: [bool; 4],
    /// Whether something is written in an unusual way.
    is_unusual: bool,
    /// Whether there are parameters, and they are an object.
    is_there: bool,
}

impl CallOutline {
    /// Goes past the parameters at `start`.
    pub(super) fn scan(
        scanner: &mut Scanner<'_>,
        start: usize,
    ) -> Result<(usize, Self), ScanError> {
        let mut outline = Self {
            is_there: true,
            ..Self::default()
        };
        let end = outline.walk(scanner, start, (start, 2), Level::Params)?;
        Ok((end, outline))
    }

    fn walk(
        &mut self,
        scanner: &mut Scanner<'_>,
        at: usize,
        (base, depth): (usize, usize),
        level: Level,
    ) -> Result<usize, ScanError> {
        walk_members(scanner, at, |scanner, key, at| {
            let member = key.plain().and_then(|key| member(level, key));
            let inner = match (member, scanner.peek(at)) {
                (Some(Outlined::Arguments), b'{') => Some(Level::Arguments),
                (Some(Outlined::Meta), b'{') => Some(Level::Meta),
                (Some(Outlined::UsedTool), b'{') => Some(Level::Tool),
                _ => None,
            };
            let end = match inner {
                Some(inner) => self.walk(scanner, at, (base, depth + 1), inner)?,
                None => scanner.value(at, depth)?,
            };
            match member {
                Some(member) => {
                    let offset = |at: usize| u32::try_from(at - base).unwrap_or(u32::MAX);
                    let span = &mut self.spans[member as usize];
                    self.is_unusual |= *span != (0, 0);
                    *span = (offset(at), offset(end));
                }
                None => {
                    self.is_unusual |= key.plain().is_none();
                    self.has_others[level as usize] = true;
                }
            }
            Ok(end)
        })
    }

    /// Returns whether the parameters can be read by their outline.
    pub fn is_usual(&self) -> bool {
        self.is_there && !self.is_unusual
    }

    /// Returns whether an object has members that the outline does not know.
    pub fn has_others(&self, level: Level) -> bool {
        self.has_others[level as usize]
    }

    /// Returns a member of these parameters.
    pub fn get(&self, params: &RawJson, member: Outlined) -> Option<RawJson> {
        let (start, end) = self.span(member)?;
        Some(RawJson::trusted(params.as_bytes().slice(start..end)))
    }

    /// Returns the text of a member of these parameters, if it is a string without escapes.
    pub fn text<'a>(&self, params: &'a RawJson, member: Outlined) -> Option<&'a str> {
        let (start, end) = self.span(member)?;
        let quoted = &params.as_bytes()[start..end];
        let text = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let is_plain = memchr::memchr(b'\\', text).is_none();
        is_plain.then(|| std::str::from_utf8(text).ok()).flatten()
    }

    fn span(&self, member: Outlined) -> Option<(usize, usize)> {
        let (start, end) = self.spans[member as usize];
        (end > 0).then_some((start as usize, end as usize))
    }
}

/// Returns the member with a key.
fn member(level: Level, key: &[u8]) -> Option<Outlined> {
    Some(match (level, key) {
        (Level::Params, b"name") => Outlined::Name,
        (Level::Params, b"arguments") => Outlined::Arguments,
        (Level::Params, b"_meta") => Outlined::Meta,
        (Level::Params, b"inputResponses") => Outlined::InputResponses,
        (Level::Params, b"requestState") => Outlined::RequestState,
        (Level::Arguments, b"tool") => Outlined::UsedTool,
        (Level::Arguments, b"arguments") => Outlined::UsedArguments,
        (Level::Tool, b"toolbox") => Outlined::UsedToolbox,
        (Level::Tool, b"server") => Outlined::UsedServer,
        (Level::Tool, b"tool") => Outlined::UsedName,
        (Level::Meta, b"progressToken") => Outlined::ProgressToken,
        (Level::Meta, key) => match key.strip_prefix(b"io.modelcontextprotocol/")? {
            b"protocolVersion" => Outlined::Version,
            b"clientCapabilities" => Outlined::Capabilities,
            b"clientInfo" => Outlined::ClientInfo,
            b"logLevel" => Outlined::LogLevel,
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::wire::Message;

    fn outlined(params: &str) -> (RawJson, CallOutline) {
        let text = format!(r#"{{"jsonrpc":"2.0","params":{params},"id":1,"method":"tools/call"}}"#);
        let (message, outline) = Message::parse_outlined(&Bytes::from(text)).unwrap();
        match message {
            Message::Request(request) => (request.params.unwrap(), outline),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_members_of_a_call_are_found() {
        let text = r#"{ "name" : "use_tool", "arguments":{"tool":{"toolbox":"a","server":"b","tool":"c"},"arguments":{"tool":{"x":[1]}}},"_meta":{"progressToken":7,"io.modelcontextprotocol/logLevel":"info","x":1}}"#;
        let (params, outline) = outlined(text);
        assert!(outline.is_usual());
        let text = |member| outline.text(&params, member);
        assert_eq!(text(Outlined::Name), Some("use_tool"));
        assert_eq!(text(Outlined::UsedToolbox), Some("a"));
        assert_eq!(text(Outlined::UsedServer), Some("b"));
        assert_eq!(text(Outlined::UsedName), Some("c"));
        assert_eq!(text(Outlined::LogLevel), Some("info"));
        let get = |member| {
            outline
                .get(&params, member)
                .map(|it| it.as_str().to_owned())
        };
        assert_eq!(
            get(Outlined::UsedArguments).unwrap(),
            r#"{"tool":{"x":[1]}}"#
        );
        assert_eq!(get(Outlined::ProgressToken).unwrap(), "7");
        assert_eq!(get(Outlined::RequestState), None);
        assert!(outline.has_others(Level::Meta));
        assert!(!outline.has_others(Level::Params) && !outline.has_others(Level::Arguments));
    }

    #[test]
    fn what_is_written_in_an_unusual_way_has_no_outline() {
        for params in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"n\u0061me":"a"}"#,
            r#"{"name":"a","arguments":{"tool":{"tool":"a","tool":"b"}}}"#,
            r#"[1]"#,
        ] {
            assert!(!outlined(params).1.is_usual(), "{params}");
        }
        let (params, outline) = outlined(r#"{"name":"\u0061"}"#);
        assert_eq!(outline.text(&params, Outlined::Name), None);
    }
}
