//! The skills of a server (SEP-2640): directories of instructions for a model, which it publishes as resources. An entry
//! has the digests of all files of a skill, so that an approval of the entry covers them.

use std::collections::HashSet;

use rawjson::{Kind, RawJson};

use crate::policy::scan;

/// The maximum number of skills of a server, and the maximum size of all entries.
pub(crate) const MAX_SKILLS: usize = 200;
pub(crate) const MAX_SKILL_BYTES: usize = 2 * 1024 * 1024;

/// The limits of the specification for one skill.
const MAX_FILES: usize = 512;
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The end of the URI of every skill.
const SKILL_FILE: &str = "/SKILL.md";

/// A skill that a server lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    /// The URI of its `SKILL.md`, which identifies it within its server.
    pub uri: String,
    pub name: String,
    pub description: String,
    /// The entry, byte for byte as the server wrote it.
    pub entry: RawJson,
}

/// A skill that cannot be offered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidSkill {
    /// Its URI, if it has one.
    pub uri: Option<String>,
    pub reason: String,
}

impl Skill {
    /// Reads an entry of `skills/list`.
    pub(crate) fn read(entry: &RawJson) -> Result<Self, InvalidSkill> {
        let uri = text(entry, "uri");
        Self::checked(entry, uri.clone()).map_err(|reason| InvalidSkill { uri, reason })
    }

    fn checked(entry: &RawJson, uri: Option<String>) -> Result<Self, String> {
        unique_keys(entry)?;
        let uri = uri.ok_or("the skill has no uri")?;
        let root = root_of(&uri).ok_or("the uri of the skill does not end with /SKILL.md")?;
        let frontmatter = entry.member("frontmatter");
        let frontmatter = frontmatter.ok_or("the skill has no frontmatter")?;
        unique_keys(&frontmatter)?;
        let name = text(&frontmatter, "name").ok_or("the frontmatter has no name")?;
        let description = text(&frontmatter, "description");
        let description = description.ok_or("the frontmatter has no description")?;
        // A client that shows the name and one that shows the URI must mean the same skill.
        if root.rsplit('/').next() != Some(&*name) {
            return Err("the uri of the skill does not end with its name".to_owned());
        }
        check_files(entry, &uri, root)?;
        // These three texts reach a model.
        if let Some(finding) = scan::hard_in_instructions(&format!("{uri}\n{name}\n{description}"))
        {
            return Err(finding.to_string());
        }
        Ok(Self {
            uri,
            name,
            description,
            entry: entry.clone(),
        })
    }

    /// Returns the URI of its directory.
    pub(crate) fn root(&self) -> &str {
        root_of(&self.uri).unwrap_or(&self.uri)
    }
}

/// Returns the directory of a skill from the URI of its `SKILL.md`.
pub(crate) fn root_of(uri: &str) -> Option<&str> {
    uri.strip_suffix(SKILL_FILE)
        .filter(|root| !root.ends_with('/'))
}

/// Returns true if a URI is a directory or something in it.
pub(crate) fn is_within(uri: &str, root: &str) -> bool {
    let rest = uri.strip_prefix(root);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Checks the files of an entry: all of them are in the skill, `SKILL.md` is one of them, and they are within the limits.
fn check_files(entry: &RawJson, uri: &str, root: &str) -> Result<(), String> {
    let files = entry
        .member("resources")
        .ok_or("the skill has no resources")?;
    if files.as_text().as_deref() == Some("dynamic") {
        return Ok(());
    }
    let files = files.elements().ok_or("resources is not an array")?;
    if files.len() > MAX_FILES {
        return Err(format!("the skill has more than {MAX_FILES} files"));
    }
    let (mut uris, mut bytes) = (HashSet::new(), 0_u64);
    for file in &files {
        unique_keys(file)?;
        let file_uri = text(file, "uri").ok_or("a file has no uri")?;
        // A file elsewhere could be one of another skill, with another digest.
        if !is_within(&file_uri, root) || file_uri == root {
            return Err("a file is not in the directory of the skill".to_owned());
        }
        let digest = text(file, "digest").unwrap_or_default();
        if !is_digest(&digest) {
            return Err("a file has no SHA-256 digest".to_owned());
        }
        let size = file.member("size");
        let size = size.and_then(|size| size.as_str().parse::<u64>().ok());
        bytes = bytes.saturating_add(size.ok_or("a file has no size")?);
        if !uris.insert(file_uri) {
            return Err("a file is listed twice".to_owned());
        }
    }
    if !uris.contains(uri) {
        return Err("SKILL.md is not among the files".to_owned());
    }
    if bytes > MAX_FILE_BYTES {
        return Err(format!("the files have more than {MAX_FILE_BYTES} bytes"));
    }
    Ok(())
}

fn is_digest(text: &str) -> bool {
    let is_hex = |digit: char| matches!(digit, '0'..='9' | 'a'..='f');
    let hex = text.strip_prefix("sha256:");
    hex.is_some_and(|hex| hex.len() == 64 && hex.chars().all(is_hex))
}

/// Refuses objects of which two readers may understand different things.
fn unique_keys(object: &RawJson) -> Result<(), String> {
    if object.kind() != Kind::Object {
        return Err("the entry is not an object".to_owned());
    }
    let members = object.members().unwrap_or_default();
    let mut keys = HashSet::new();
    if members.iter().all(|member| keys.insert(&member.key)) {
        Ok(())
    } else {
        Err("the entry has a duplicate key".to_owned())
    }
}

fn text(object: &RawJson, name: &str) -> Option<String> {
    Some(object.member(name)?.as_text()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn read(entry: &str) -> Result<Skill, String> {
        let entry = RawJson::parse(&entry.to_owned().into()).unwrap();
        Skill::read(&entry).map_err(|it| it.reason)
    }

    fn entry(uri: &str, resources: &str) -> String {
        format!(
            r#"{{"uri":"{uri}","frontmatter":{{"name":"refunds","description":"d"}},"resources":{resources}}}"#
        )
    }

    fn file(uri: &str, size: u64) -> String {
        format!(r#"{{"uri":"{uri}","digest":"{DIGEST}","size":{size}}}"#)
    }

    #[test]
    fn valid_entries_are_read() {
        let files = [
            file("skill://acme/refunds/SKILL.md", 3),
            file("skill://acme/refunds/a/b.md", 4),
        ];
        for resources in [format!("[{}]", files.join(",")), r#""dynamic""#.to_owned()] {
            let skill = read(&entry("skill://acme/refunds/SKILL.md", &resources)).unwrap();
            assert_eq!(skill.root(), "skill://acme/refunds");
            assert_eq!((&*skill.name, &*skill.description), ("refunds", "d"));
        }
    }

    #[test]
    fn invalid_entries_are_refused_with_the_reason() {
        let uri = "skill://refunds/SKILL.md";
        let own = file(uri, 1);
        let many = vec![own.clone(); MAX_FILES + 1].join(",");
        let rows = [
            ("1".to_owned(), "the entry is not an object"),
            ("{}".to_owned(), "the skill has no uri"),
            (entry("skill://refunds", "[]"), "the uri of the skill does not end with /SKILL.md"),
            (entry("skill://other/SKILL.md", "[]"), "the uri of the skill does not end with its name"),
            (entry(uri, "[]"), "SKILL.md is not among the files"),
            (entry(uri, "{}"), "resources is not an array"),
            (entry(uri, &format!("[{own},{own}]")), "a file is listed twice"),
            (entry(uri, &format!("[{}]", file("skill://refunds2/x", 1))), "a file is not in the directory of the skill"),
            (entry(uri, &format!("[{many}]")), "the skill has more than 512 files"),
            (entry(uri, &format!("[{}]", file(uri, MAX_FILE_BYTES + 1))), "the files have more than 16777216 bytes"),
            (entry(uri, r#"[{"uri":"skill://refunds/SKILL.md","digest":"sha256:0","size":1}]"#), "a file has no SHA-256 digest"),
            (
                r#"{"uri":"skill://a/SKILL.md","uri":"skill://b/SKILL.md","frontmatter":{},"resources":[]}"#.to_owned(),
                "the entry has a duplicate key",
            ),
        ];
        for (entry, reason) in rows {
            assert_eq!(read(&entry).unwrap_err(), reason, "{entry}");
        }
    }
}
