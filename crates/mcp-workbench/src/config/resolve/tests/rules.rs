//! The audit log settings.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn the_audit_log_is_where_the_file_says_or_in_the_state_directory() {
    let audit = |written: &str| {
        let text = format!(r#"{{"audit": {written}, "toolboxes": {{}}}}"#);
        load(&text).config.audit
    };
    assert_eq!(audit("false"), None);
    assert_eq!(audit("null"), None);
    let default = audit("true").unwrap();
    let state = Path::new("/home/me/.local/state/mcp-workbench/audit.jsonl");
    assert_eq!(default.file, state);
    assert_eq!((default.max_bytes, default.files), (10_485_760, 5));
    assert_eq!(audit("{}").unwrap(), default);
    let named = audit(r#"{"file": "${OTHER}/a.jsonl", "maxBytes": 65536, "files": 1}"#).unwrap();
    assert_eq!(named.file, Path::new("/etc/box/swordfish/a.jsonl"));
    assert_eq!((named.max_bytes, named.files), (65_536, 1));
}
