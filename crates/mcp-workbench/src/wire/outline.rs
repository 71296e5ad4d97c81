//! The members of a `tools/call` that every call needs, found in the pass that checks the message: those of its
//! parameters, of its `_meta`, and inside its arguments those of `use_tool`. Parameters with escapes or duplicate keys
//! in them have no outline and are parsed separately.

use rawjson::{RawJson, ScanFault, Scanner, walk_members};

/// A member that an outline has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlined {
    Name,
    Arguments,
    Meta,
    InputResponses,
    RequestState,
    /// The member `tool` in the arguments of `use_tool`.
    UsedTool,
    /// The member `arguments` in the arguments of `use_tool`.
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
    Capabilities,
    ClientInfo,
    /// The least urgent log messages that the client wants.
    LogLevel,
}

const MEMBERS: usize = Outlined::LogLevel as usize + 1;

/// The members of `_meta` that an outline knows.
const META_MEMBERS: [Outlined; 5] = [
    Outlined::ProgressToken,
    Outlined::Version,
    Outlined::Capabilities,
    Outlined::ClientInfo,
    Outlined::LogLevel,
];

/// The number of unknown members of `_meta` that an outline has. A trace context has three.
const MAX_OTHERS: usize = 4;

/// An object that an outline goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Params,
    Meta,
    Arguments,
    /// The tool in the arguments.
    Tool,
}

/// The places of the members of a call, counted from the beginning of its parameters. A message is at most 16 MiB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallOutline<'a> {
    spans: [(u32, u32); MEMBERS],
    /// A bit for each member that is a string without escapes.
    plain: u16,
    /// For each level, true if it has members that the outline does not know.
    has_others: [bool; 4],
    /// The members of `_meta` that the outline does not know, with their keys.
    meta_others: [(u32, u32); MAX_OTHERS],
    /// The number of these members, including those that did not fit.
    meta_others_count: usize,
    /// Set if something is written in an unusual way.
    is_unusual: bool,
    /// Set if there are parameters, and they are an object.
    is_there: bool,
    /// The text that `_meta` probably has.
    expected_meta: Option<&'a [u8]>,
    /// Set if `_meta` has that text. It has no spans of its members then.
    has_expected_meta: bool,
}

/// There are more unknown members than an outline has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyMembers;

/// The position of an object inside the parameters.
#[derive(Clone, Copy)]
struct Nesting {
    /// The start of the parameters.
    base: usize,
    depth: usize,
    level: Level,
}

impl<'a> CallOutline<'a> {
    /// Creates an outline for parameters whose `_meta` probably has this text, which was checked in an earlier message. It
    /// must be ASCII without escapes and line ends, because the same text is not scanned again.
    pub(crate) fn expecting(meta: Option<&'a RawJson>) -> Self {
        Self {
            expected_meta: meta.map(|meta| meta.as_bytes().as_ref()),
            ..Self::default()
        }
    }

    /// Returns true if `_meta` has the expected text.
    pub(crate) fn has_expected_meta(&self) -> bool {
        self.has_expected_meta
    }

    /// Skips the parameters at `start`, which replace those of an earlier outline.
    pub(super) fn scan(
        &mut self,
        scanner: &mut Scanner<'_>,
        start: usize,
    ) -> Result<usize, ScanFault> {
        *self = Self {
            is_there: true,
            expected_meta: self.expected_meta,
            ..Self::default()
        };
        let nesting = Nesting {
            base: start,
            depth: 2,
            level: Level::Params,
        };
        self.walk(scanner, start, nesting)
    }

    fn walk(
        &mut self,
        scanner: &mut Scanner<'_>,
        at: usize,
        nesting: Nesting,
    ) -> Result<usize, ScanFault> {
        let Nesting { base, depth, level } = nesting;
        walk_members(scanner, at, |scanner, key, at| {
            let member = key.plain().and_then(|key| member(level, key));
            let is_string = scanner.peek(at) == b'"';
            // Only these objects are looked into. The arguments of any other tool stay bytes.
            let inner = match (member, scanner.peek(at)) {
                (Some(Outlined::Arguments), b'{') => Some(Level::Arguments),
                (Some(Outlined::Meta), b'{') => Some(Level::Meta),
                (Some(Outlined::UsedTool), b'{') => Some(Level::Tool),
                _ => None,
            };
            let end = match (inner, self.end_of_expected(scanner, inner, at)) {
                (_, Some(end)) => end,
                (Some(level), None) => {
                    let depth = depth + 1;
                    self.walk(scanner, at, Nesting { base, depth, level })?
                }
                (None, None) => scanner.value(at, depth)?,
            };
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a message is at most 16 MiB"
            )]
            let offset = |at: usize| (at - base) as u32;
            match member {
                Some(member) => {
                    let span = &mut self.spans[member as usize];
                    // A duplicate. Readers differ in which of the two they use, so the parameters are parsed
                    // separately.
                    self.is_unusual |= *span != (0, 0);
                    *span = (offset(at), offset(end));
                    let is_plain = is_string && scanner.last_string_is_plain();
                    self.plain |= u16::from(is_plain) << member as u16;
                }
                None => {
                    // Without its escapes the key may be one of the known ones.
                    self.is_unusual |= key.plain().is_none();
                    self.has_others[level as usize] = true;
                    if level == Level::Meta {
                        self.add_meta_other(offset(key.at), offset(end));
                    }
                }
            }
            Ok(end)
        })
    }

    /// Returns the end of the object at `at` if it is `_meta` and has the expected text. An object ends at its last brace,
    /// so a scan would end there too.
    #[inline]
    fn end_of_expected(
        &mut self,
        scanner: &Scanner<'_>,
        level: Option<Level>,
        at: usize,
    ) -> Option<usize> {
        let text = self.expected_meta.filter(|_| level == Some(Level::Meta))?;
        self.has_expected_meta = scanner.bytes()[at..].starts_with(text);
        self.has_expected_meta.then(|| at + text.len())
    }

    fn add_meta_other(&mut self, start: u32, end: u32) {
        if let Some(other) = self.meta_others.get_mut(self.meta_others_count) {
            *other = (start, end);
        }
        self.meta_others_count += 1;
    }

    /// Returns true if the parameters can be read through their outline.
    pub fn is_usual(&self) -> bool {
        self.is_there && !self.is_unusual
    }

    /// Returns true if an object has members that the outline does not know.
    pub fn has_others(&self, level: Level) -> bool {
        self.has_others[level as usize]
    }

    /// Returns true if the parameters have this member.
    pub fn has(&self, member: Outlined) -> bool {
        self.span(member).is_some()
    }

    /// Returns an object of the members of `_meta` that the outline does not know; `None` if there are none.
    pub fn other_meta(&self, params: &RawJson) -> Result<Option<RawJson>, TooManyMembers> {
        let others = self.meta_others.get(..self.meta_others_count);
        let is_known = |member: &Outlined| self.has(*member);
        Ok(match others.ok_or(TooManyMembers)? {
            [] => None,
            // Every member is relayed, so the object is passed on without a copy.
            _ if !META_MEMBERS.iter().any(is_known) => self.get(params, Outlined::Meta),
            others => {
                let spans = others.iter().map(|it| it.0 as usize..it.1 as usize);
                Some(params.of_members(&spans.collect::<Vec<_>>()))
            }
        })
    }

    /// Returns a member of these parameters.
    pub fn get(&self, params: &RawJson, member: Outlined) -> Option<RawJson> {
        let (start, end) = self.span(member)?;
        Some(RawJson::trusted(params.as_bytes().slice(start..end)))
    }

    /// Returns the text of a member of these parameters, if it is a string without escapes.
    pub fn text<'p>(&self, params: &'p RawJson, member: Outlined) -> Option<&'p str> {
        // With escapes the bytes are not the text.
        if self.plain & (1 << member as u16) == 0 {
            return None;
        }
        let (start, end) = self.span(member)?;
        let text = params.as_bytes().get(start + 1..end - 1)?;
        std::str::from_utf8(text).ok()
    }

    /// Returns the texts of members that lie in another one, if all are strings without escapes. Decoding the other one once
    /// is cheaper than decoding each of them.
    pub fn texts_in<'p, const N: usize>(
        &self,
        params: &'p RawJson,
        outer: Outlined,
        members: [Outlined; N],
    ) -> Option<[&'p str; N]> {
        let (start, end) = self.span(outer)?;
        let text = std::str::from_utf8(params.as_bytes().get(start..end)?).ok()?;
        let mut texts = [""; N];
        for (place, member) in texts.iter_mut().zip(members) {
            if self.plain & (1 << member as u16) == 0 {
                return None;
            }
            let (from, to) = self.span(member)?;
            *place = text.get(from.checked_sub(start)? + 1..to.checked_sub(start)? - 1)?;
        }
        Some(texts)
    }

    fn span(&self, member: Outlined) -> Option<(usize, usize)> {
        let (start, end) = self.spans[member as usize];
        (end > 0).then_some((start as usize, end as usize))
    }
}

/// Returns the member with a key.
#[inline]
fn member(level: Level, key: &[u8]) -> Option<Outlined> {
    Some(match level {
        Level::Params => match key {
            b"name" => Outlined::Name,
            b"arguments" => Outlined::Arguments,
            b"_meta" => Outlined::Meta,
            b"inputResponses" => Outlined::InputResponses,
            b"requestState" => Outlined::RequestState,
            _ => return None,
        },
        Level::Arguments => match key {
            b"tool" => Outlined::UsedTool,
            b"arguments" => Outlined::UsedArguments,
            _ => return None,
        },
        Level::Tool => match key {
            b"toolbox" => Outlined::UsedToolbox,
            b"server" => Outlined::UsedServer,
            b"tool" => Outlined::UsedName,
            _ => return None,
        },
        Level::Meta => match key {
            b"progressToken" => Outlined::ProgressToken,
            b"io.modelcontextprotocol/protocolVersion" => Outlined::Version,
            b"io.modelcontextprotocol/clientCapabilities" => Outlined::Capabilities,
            b"io.modelcontextprotocol/clientInfo" => Outlined::ClientInfo,
            b"io.modelcontextprotocol/logLevel" => Outlined::LogLevel,
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::wire::Message;

    fn outlined(params: &str) -> (RawJson, CallOutline<'static>) {
        let mut outline = CallOutline::default();
        (outline_into(&mut outline, params), outline)
    }

    fn outline_into(outline: &mut CallOutline<'_>, params: &str) -> RawJson {
        let text = format!(r#"{{"jsonrpc":"2.0","params":{params},"id":1,"method":"tools/call"}}"#);
        match Message::parse_outlined(&Bytes::from(text), outline).unwrap() {
            Message::Request(request) => request.params.unwrap(),
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
        let names = [Outlined::UsedToolbox, Outlined::UsedName];
        let texts = outline.texts_in(&params, Outlined::UsedTool, names);
        assert_eq!(texts, Some(["a", "c"]));
        let outside = outline.texts_in(&params, Outlined::UsedTool, [Outlined::LogLevel]);
        assert_eq!(outside, None);
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
    fn only_the_expected_text_of_meta_is_not_scanned_again() {
        let expected = RawJson::parse(&Bytes::from_static(br#"{"a":{"b":1}}"#)).unwrap();
        for (params, is_expected) in [
            (r#"{"name":"a","_meta":{"a":{"b":1}}}"#, true),
            (
                r#"{"name":"a","_meta" : {"a":{"b":1}} , "arguments":{}}"#,
                true,
            ),
            (r#"{"name":"a","_meta":{"a":{"b":2}}}"#, false),
            (r#"{"name":"a","_meta":{"a":{"b":1},"c":1}}"#, false),
            (r#"{"name":"a","arguments":{"a":{"b":1}}}"#, false),
            (r#"{"name":"a","arguments":{"_meta":{"a":{"b":1}}}}"#, false),
            (r#"{"name":"a"}"#, false),
        ] {
            let mut outline = CallOutline::expecting(Some(&expected));
            let text = outline_into(&mut outline, params);
            assert!(outline.is_usual());
            assert_eq!(outline.has_expected_meta(), is_expected, "{params}");
            let plain = outlined(params).1;
            for member in [Outlined::Name, Outlined::Arguments, Outlined::Meta] {
                assert_eq!(outline.get(&text, member), plain.get(&text, member));
            }
            assert_eq!(
                outline.has_others(Level::Meta),
                plain.has_others(Level::Meta) && !is_expected
            );
        }
        // What follows the text is checked as always.
        let mut outline = CallOutline::expecting(Some(&expected));
        let text = br#"{"jsonrpc":"2.0","params":{"_meta":{"a":{"b":1}}}},"id":1,"method":"x"}"#;
        assert!(Message::parse_outlined(&Bytes::from_static(text), &mut outline).is_err());
        let mut outline = CallOutline::expecting(Some(&expected));
        let twice = r#"{"name":"a","_meta":{"a":{"b":1}},"_meta":{"a":{"b":1}}}"#;
        outline_into(&mut outline, twice);
        assert!(!outline.is_usual());
    }

    #[test]
    fn an_unusual_spelling_has_no_outline() {
        for params in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"n\u0061me":"a"}"#,
            r#"{"name":"a","arguments":{"tool":{"tool":"a","tool":"b"}}}"#,
            "[1]",
        ] {
            assert!(!outlined(params).1.is_usual(), "{params}");
        }
        let (params, outline) = outlined(r#"{"name":"\u0061"}"#);
        assert_eq!(outline.text(&params, Outlined::Name), None);
    }
}
