//! Checks single texts for instructions, paths of secrets, URLs, encoded data and hidden text. `characters`
//! checks their characters.

use super::{LONG_TEXT, finding::Problem, phrases};
use crate::visible::{self, imitation};

const OWN_TOOLS: &[&str] = &["open_toolbox", "use_tool", "search_tools", "read_result"];

/// Paths that contain secrets, in lower case.
const SECRET_PATHS: &[&str] = &[
    ".ssh/",
    "~/.ssh",
    "id_rsa",
    "id_ed25519",
    ".aws/credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".kube/config",
    ".docker/config.json",
    ".gnupg",
    ".bash_history",
    ".zsh_history",
    "/etc/passwd",
    "/etc/shadow",
    ".cursor/mcp.json",
    "claude_desktop_config.json",
    ".claude.json",
    "wallet.dat",
    "login.keychain",
    "~/.env",
    "/.env",
    ".config/gcloud",
    "workbench.lock",
    "/proc/self/environ",
    "cookies.sqlite",
    "login data",
    ".password-store",
];

/// The length from which a run of characters looks like data.
const MIN_BLOB_LENGTH: usize = 160;
/// The length of data in a URL that counts.
const MIN_URL_DATA_LENGTH: usize = 40;
/// The maximum length of an image's label before its URL.
const MAX_IMAGE_LABEL: usize = 200;
/// The numbers of consecutive blanks and line ends that push text out of sight.
const PADDING_BLANKS: usize = 60;
const PADDING_LINES: usize = 12;

pub(super) fn of_text(text: &str) -> Vec<Problem> {
    let mut problems = phrases::instructions(text);
    let lower = text.to_ascii_lowercase();
    let checks = [
        secret_path,
        address,
        command,
        comment,
        blob,
        padding,
        mixed_scripts,
        long,
    ];
    problems.extend(checks.iter().filter_map(|check| check(text, &lower)));
    problems
}

/// Checks the key of a member. Keys are short, so only some checks apply.
pub(super) fn of_key(key: &str) -> Vec<Problem> {
    let mut problems = phrases::instructions(key);
    let lower = key.to_ascii_lowercase();
    let checks = [secret_path, mixed_scripts, blob];
    problems.extend(checks.iter().filter_map(|check| check(key, &lower)));
    problems
}

/// Checks the name of a tool.
pub(super) fn of_name(name: &str) -> Option<Problem> {
    let skeleton = visible::skeleton(name);
    let is_own = OWN_TOOLS
        .iter()
        .any(|own| visible::skeleton(own) == skeleton);
    is_own.then_some(Problem::ReservedName)
}

fn secret_path(_: &str, lower: &str) -> Option<Problem> {
    let found = SECRET_PATHS.iter().find(|path| lower.contains(**path));
    found.map(|path| Problem::SecretPath {
        path: (*path).to_owned(),
    })
}

/// Finds a URL that runs something or contains data, or an image that is fetched when shown.
fn address(text: &str, lower: &str) -> Option<Problem> {
    let runs = [
        "javascript:",
        "vbscript:",
        "data:text/html",
        "data:application/",
        "data:image/svg",
        "data:text/javascript",
    ];
    // `javascript:` at the end of a sentence is text about the scheme.
    let runs = runs.iter().filter_map(|scheme| {
        let at = lower.find(scheme)?;
        let rest = lower[at + scheme.len()..].chars().next();
        rest.is_some_and(|it| !it.is_whitespace()).then_some(at)
    });
    let holds = lower.match_indices(";base64,").filter_map(|(at, mark)| {
        let data = lower[at + mark.len()..].bytes();
        (data.take_while(|it| is_data(*it)).count() >= MIN_URL_DATA_LENGTH).then_some(at)
    });
    // `![label](http…` is an image, which is fetched when it is shown. A link is not.
    let fetches = lower.match_indices("](http").filter_map(|(at, _)| {
        let from = at.saturating_sub(MAX_IMAGE_LABEL);
        let label = &lower.as_bytes()[from..at];
        let begin = from + label.iter().rposition(|it| *it == b'[')?;
        let mark = begin.checked_sub(1)?;
        (lower.as_bytes()[mark] == b'!').then_some(mark)
    });
    let at = runs.chain(holds).chain(fetches).next()?;
    Some(Problem::Address {
        address: text[at..].split_whitespace().next()?.to_owned(),
    })
}

/// Finds a download that is piped into a shell.
fn command(text: &str, lower: &str) -> Option<Problem> {
    let fetched = ["curl ", "wget ", "iwr ", "base64 -d", "base64 --decode"];
    let at = fetched.iter().find_map(|word| lower.find(word))?;
    let rest = &lower[at..];
    let line = rest.lines().next().unwrap_or_default();
    // A download alone is common in documentation; running it is not.
    let (_, after) = line.split_once('|')?;
    let shells = ["sh", "bash", "zsh", "python", "node", "iex", "sudo"];
    let is_run = shells
        .iter()
        .any(|shell| after.trim_start().starts_with(shell));
    is_run.then(|| Problem::Command {
        text: text[at..at + line.len()].to_owned(),
    })
}

fn comment(_: &str, lower: &str) -> Option<Problem> {
    let (_, rest) = lower.split_once("<!--")?;
    rest.contains("-->").then_some(Problem::Comment)
}

fn blob(text: &str, _: &str) -> Option<Problem> {
    let runs = text.split(|it: char| !u8::try_from(it).is_ok_and(is_data));
    let longest = runs.filter(|run| is_mixed(run)).map(str::len).max()?;
    (longest >= MIN_BLOB_LENGTH).then_some(Problem::Blob { length: longest })
}

fn is_data(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Returns true if a run has enough digits for encoded data; paths and words have few.
fn is_mixed(run: &str) -> bool {
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    // More than one digit in twenty characters.
    digits * 20 > run.len()
}

fn padding(text: &str, _: &str) -> Option<Problem> {
    let (mut blanks, mut lines) = (0, 0);
    let trimmed = text.trim();
    for character in trimmed.chars() {
        if !character.is_whitespace() {
            (blanks, lines) = (0, 0);
            continue;
        }
        blanks += 1;
        lines += usize::from(character == '\n');
        if lines >= PADDING_LINES || (blanks - lines) >= PADDING_BLANKS {
            return Some(Problem::Padding);
        }
    }
    None
}

fn mixed_scripts(text: &str, _: &str) -> Option<Problem> {
    let word = imitation(text)?.to_owned();
    Some(Problem::MixedScripts { word })
}

fn long(text: &str, _: &str) -> Option<Problem> {
    let length = text.chars().count();
    (length > LONG_TEXT).then_some(Problem::Long { length })
}
