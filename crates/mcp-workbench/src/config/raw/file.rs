//! Reads the whole file and its toolboxes.

use indexmap::IndexMap;
use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::Value,
    common::Ranged,
    errors::{ParseError, ParseErrorKind},
    parse_to_ast,
};

use super::{
    auth,
    keys::{self, AUDIT_KEYS, CLIENT_KEYS, FILE_KEYS, NEEDED_TOOLBOX_KEYS, TOOLBOX_KEYS},
    limits,
    reader::{Entry, Node, Reader, is_null},
    seal, server,
    types::{
        AUDIT_BYTES, AUDIT_FILES, NAME_LIMITS, OPEN_WAITS, RawAudit, RawAuditArguments,
        RawAuditDetails, RawClient, RawConfig, RawConnect, RawPin, RawToolMode, RawToolbox, Text,
    },
};
use crate::{
    config::{
        detail::Detail,
        meta_tools,
        problems::{Fault, Findings, KeyFault, KeyScope, Named, ValueFault},
    },
    near::nearest,
};

/// JSON with comments and trailing commas, and nothing looser.
pub(in crate::config) const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const TOOL_MODES: &[&str] = &["proxy", "dynamic", "native"];

const CONNECTS: &[&str] = &["on-open", "on-use"];

/// The values of `arguments` of `audit`.
const NOTED_ARGUMENTS: &[&str] = &["shape", "values"];

const PINS: &[&str] = &["off", "notice", "enforce"];

/// Reads the content of a configuration file. Parts that were recorded as wrong are missing from the result.
pub(in crate::config) fn read(text: &str, findings: &mut Findings) -> RawConfig {
    // The byte order mark that some editors put at the beginning of a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::new(text, findings);
    match parse_to_ast(text, &CollectOptions::default(), &SYNTAX) {
        Ok(parsed) => {
            if let Some(value) = &parsed.value {
                return config(&mut reader, value);
            }
            reader.report(0, "", empty_file());
        }
        Err(error) => reader.report(error.range().start, "", syntax_fault(&error)),
    }
    RawConfig::default()
}

fn config(reader: &mut Reader<'_>, value: &Value<'_>) -> RawConfig {
    let mut config = RawConfig::default();
    let root = Node {
        value,
        path: String::new(),
    };
    let Some(entries) = reader.entries(&root) else {
        return config;
    };
    let mut has_toolboxes = false;
    for entry in entries.iter().filter(|entry| !is_null(&entry.node)) {
        match entry.key {
            "toolboxes" => {
                // Present, even if its value is wrong: one mistake is not reported as two.
                has_toolboxes = true;
                config.toolboxes = named(reader, &entry.node, Named::Toolbox, toolbox);
            }
            "clients" => {
                config.clients = Some(named(reader, &entry.node, Named::Client, client));
            }
            "limits" => config.limits = limits::limits(reader, &entry.node),
            "auth" => config.auth = auth::auth(reader, &entry.node),
            "seal" => config.seal = seal::seal(reader, &entry.node),
            "store" => config.store = reader.filled_text(&entry.node, "URL"),
            "replicaAddress" => config.replica_address = reader.filled_text(&entry.node, "URL"),
            "toolMode" => config.tool_mode = tool_mode(reader, &entry.node),
            "nativeToolbox" => config.native_toolbox = reader.text(&entry.node),
            "roots" => config.roots = reader.filled_texts(&entry.node, "folder"),
            "toolNameLimit" => {
                let (least, most) = NAME_LIMITS.into_inner();
                config.tool_name_limit = reader.positive(&entry.node, least, most);
            }
            "autoOpen" => config.auto_open = reader.flag(&entry.node),
            "openWaitMs" => {
                let (least, most) = OPEN_WAITS.into_inner();
                config.open_wait_ms = reader.positive(&entry.node, least, most);
            }
            "metaTools" => config.meta_tools = meta_tools::read(reader, &entry.node),
            "openDetail" => config.open_detail = Detail::read(reader, &entry.node),
            "connect" => config.connect = connect(reader, &entry.node),
            "watch" => config.watch = reader.flag(&entry.node),
            "shared" => config.shared = reader.flag(&entry.node),
            "maxResultChars" => config.max_result_chars = reader.budget(&entry.node),
            "select" => config.select = reader.flag(&entry.node),
            "sanitize" => config.sanitize = reader.flag(&entry.node),
            "learnShapes" => config.learn_shapes = reader.flag(&entry.node),
            "attributeQuestions" => {
                config.attribute_questions = reader.flag(&entry.node);
            }
            "pin" => config.pin = pin(reader, &entry.node),
            "audit" => config.audit = audit(reader, &entry.node),
            "$schema" => {
                // Read only for its faults: it is for editors, and nothing here uses it.
                reader.text(&entry.node);
            }
            _ => unknown_key(reader, entry, KeyScope::File, FILE_KEYS),
        }
    }
    if !has_toolboxes {
        let fault = KeyFault::Missing { key: "toolboxes" };
        reader.report(value.start(), "", fault);
    }
    check_native_toolbox(reader, &config, value);
    check_client_toolboxes(reader, &config);
    config
}

/// Checks that the toolboxes of clients exist.
fn check_client_toolboxes(reader: &mut Reader<'_>, config: &RawConfig) {
    let clients = config.clients.iter().flat_map(IndexMap::values);
    for named in clients
        .filter_map(|client| client.toolboxes.as_ref())
        .flatten()
    {
        check_toolbox(reader, config, named);
    }
}

/// Checks that a toolbox exists.
fn check_toolbox(reader: &mut Reader<'_>, config: &RawConfig, named: &Text) {
    if config.toolboxes.contains_key(&named.written) {
        return;
    }
    let known = config.toolboxes.keys().map(String::as_str);
    let fault = ValueFault::UnknownToolbox {
        near: nearest(&named.written, known).map(str::to_owned),
        found: named.written.clone(),
    };
    reader.report_text(named, fault);
}

/// Checks that native mode has a toolbox that exists.
fn check_native_toolbox(reader: &mut Reader<'_>, config: &RawConfig, value: &Value<'_>) {
    let named = config.native_toolbox.as_ref();
    match named {
        None if config.tool_mode == Some(RawToolMode::Native) => {
            let key = "nativeToolbox";
            reader.report(value.start(), "", KeyFault::Missing { key });
        }
        Some(named) => check_toolbox(reader, config, named),
        None => {}
    }
}

fn client(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawClient> {
    let mut client = RawClient::default();
    let entries = reader.entries(node)?;
    for entry in entries.iter().filter(|entry| !is_null(&entry.node)) {
        match entry.key {
            "claims" => {
                let value = |reader: &mut Reader<'_>, node: &Node<'_>| reader.text(node);
                client.claims = Some(named(reader, &entry.node, Named::Claim, value));
            }
            "scopes" => client.scopes = reader.filled_texts(&entry.node, "scope"),
            "toolboxes" => client.toolboxes = reader.filled_texts(&entry.node, "toolbox"),
            "permissions" => client.permissions = server::permissions(reader, &entry.node),
            "maxResultChars" => client.max_result_chars = reader.budget(&entry.node),
            "limits" => client.limits = limits::limits(reader, &entry.node),
            _ => unknown_key(reader, entry, KeyScope::Client, CLIENT_KEYS),
        }
    }
    Some(client)
}

fn toolbox(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawToolbox> {
    let entries = reader.entries(node)?;
    let mut description = None;
    let mut mcp_servers = IndexMap::new();
    let mut connects = None;
    let mut missing = NEEDED_TOOLBOX_KEYS.to_vec();
    for entry in entries.iter().filter(|entry| !is_null(&entry.node)) {
        missing.retain(|key| *key != entry.key);
        match entry.key {
            "description" => description = reader.filled_text(&entry.node, "description"),
            "mcpServers" => mcp_servers = named(reader, &entry.node, Named::Server, server::server),
            "connect" => connects = connect(reader, &entry.node),
            "$schema" => {}
            _ => unknown_key(reader, entry, KeyScope::Toolbox, TOOLBOX_KEYS),
        }
    }
    for key in missing {
        reader.report_value(node, KeyFault::Missing { key });
    }
    Some(RawToolbox {
        description,
        mcp_servers,
        connect: connects,
    })
}

fn connect(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawConnect> {
    let word = reader.text(node)?.written;
    let fault = match word.as_str() {
        "on-open" => return Some(RawConnect::OnOpen),
        "on-use" => return Some(RawConnect::OnUse),
        _ => ValueFault::UnknownWord {
            near: nearest(&word, CONNECTS.iter().copied()),
            found: word,
            known: CONNECTS,
        },
    };
    reader.report_value(node, fault);
    None
}

fn tool_mode(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawToolMode> {
    let word = reader.text(node)?.written;
    let fault = match word.as_str() {
        "proxy" => return Some(RawToolMode::Proxy),
        "dynamic" => return Some(RawToolMode::Dynamic),
        "native" => return Some(RawToolMode::Native),
        _ => ValueFault::UnknownWord {
            near: nearest(&word, TOOL_MODES.iter().copied()),
            found: word,
            known: TOOL_MODES,
        },
    };
    reader.report_value(node, fault);
    None
}

pub(super) fn pin(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawPin> {
    let word = reader.text(node)?.written;
    let fault = match word.as_str() {
        "off" => return Some(RawPin::Off),
        "notice" => return Some(RawPin::Notice),
        "enforce" => return Some(RawPin::Enforce),
        _ => ValueFault::UnknownWord {
            near: nearest(&word, PINS.iter().copied()),
            found: word,
            known: PINS,
        },
    };
    reader.report_value(node, fault);
    None
}

fn audit(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawAudit> {
    match node.value {
        Value::BooleanLit(boolean) => return Some(RawAudit::Enabled(boolean.value)),
        Value::Object(_) => {}
        _ => {
            reader.wrong_type(node, "a boolean or an object");
            return None;
        }
    }
    let mut details = RawAuditDetails::default();
    let entries = reader.entries(node)?;
    for entry in entries.iter().filter(|entry| !is_null(&entry.node)) {
        let node = &entry.node;
        match entry.key {
            "file" => details.file = reader.filled_text(node, "file name"),
            "maxBytes" => {
                let (least, most) = AUDIT_BYTES.into_inner();
                details.max_bytes = reader.positive(node, least, most);
            }
            "files" => {
                let (least, most) = AUDIT_FILES.into_inner();
                details.files = reader.positive(node, least, most);
            }
            "arguments" => details.arguments = audit_arguments(reader, node),
            _ => unknown_key(reader, entry, KeyScope::Audit, AUDIT_KEYS),
        }
    }
    Some(RawAudit::Details(details))
}

fn audit_arguments(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawAuditArguments> {
    let word = reader.text(node)?.written;
    let fault = match word.as_str() {
        "shape" => return Some(RawAuditArguments::Shape),
        "values" => return Some(RawAuditArguments::Values),
        _ => ValueFault::UnknownWord {
            near: nearest(&word, NOTED_ARGUMENTS.iter().copied()),
            found: word,
            known: NOTED_ARGUMENTS,
        },
    };
    reader.report_value(node, fault);
    None
}

/// Reads an object whose keys are names that the user chooses.
pub(super) fn named<T>(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    kind: Named,
    read: impl Fn(&mut Reader<'_>, &Node<'_>) -> Option<T>,
) -> IndexMap<String, T> {
    let mut members = IndexMap::new();
    for entry in reader.entries(node).unwrap_or_default() {
        if let Some(fault) = name_fault(kind, entry.key) {
            // The value is still read, so that its faults are reported at once.
            reader.report(entry.key_start, &entry.node.path, fault);
        }
        if let Some(value) = read(reader, &entry.node) {
            members.insert(entry.key.into(), value);
        }
    }
    members
}

fn name_fault(kind: Named, name: &str) -> Option<KeyFault> {
    match kind {
        _ if name.trim().is_empty() => Some(KeyFault::EmptyName { named: kind }),
        // Any other name can be passed to a program.
        Named::Variable if name.contains(['=', '\0']) => {
            Some(KeyFault::VariableName { name: name.into() })
        }
        Named::Header if !name.chars().all(is_header_character) => {
            Some(KeyFault::HeaderName { name: name.into() })
        }
        _ => None,
    }
}

/// Returns whether RFC 9110 allows a character in a header name.
fn is_header_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
}

pub(super) fn unknown_key(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    scope: KeyScope,
    known: &'static [&'static str],
) {
    if keys::is_note(entry.key) {
        return;
    }
    let fault = KeyFault::Unknown {
        key: entry.key.into(),
        scope,
        near: nearest(entry.key, known.iter().copied()),
    };
    reader.report(entry.key_start, &entry.node.path, fault);
}

/// Returns the fault of a file without a value.
pub(in crate::config) fn empty_file() -> Fault {
    Fault::Syntax {
        what: "the file is empty".into(),
        remedy: "the smallest configuration is `{\"toolboxes\": {}}`",
    }
}

/// Converts an error of the parser, with the remedy that usually helps.
pub(in crate::config) fn syntax_fault(error: &ParseError) -> Fault {
    let remedy = match error.kind() {
        ParseErrorKind::ExpectedComma => "put a comma here",
        ParseErrorKind::SingleQuotedStringsNotAllowed
        | ParseErrorKind::ExpectedStringObjectProperty => "use double quotes",
        ParseErrorKind::ExpectedColonAfterObjectKey => "put a colon between the key and its value",
        ParseErrorKind::UnterminatedObject => "close this `{` with a `}`",
        ParseErrorKind::UnterminatedArray => "close this `[` with a `]`",
        ParseErrorKind::UnterminatedCommentBlock => "close the comment with `*/`",
        ParseErrorKind::MultipleRootJsonValues => "remove everything after the last `}`",
        ParseErrorKind::String(_) => {
            "close the string with a double quote, and write a backslash as `\\\\`"
        }
        _ => "JSON with comments and trailing commas is expected; look just before this place too",
    };
    let what = error.kind().to_string();
    // The parser begins its messages with a capital letter, and ours begin with a small one.
    let mut letters = what.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    Fault::Syntax {
        what: first.into_iter().chain(letters).collect(),
        remedy,
    }
}
