//! The order of reports and writes.

use bytes::Bytes;
use rawjson::RawJson;
use tempfile::TempDir;

use super::*;
use crate::{
    config::PinMode,
    lock::{NoticeScope, ServerPins},
};

fn pins(folder: &TempDir) -> Arc<Pins> {
    let file = folder.path().join("workbench.lock");
    let cache = Arc::new(ServerCache::new(Some(folder.path())));
    Arc::new(Pins {
        texts: Texts::new(Arc::clone(&cache), Some(&file)),
        programs: Arc::default(),
        cache,
        file: Some(file),
        program: Invocation::for_default_file(),
        state: Mutex::default(),
        records_first_contacts: true,
        policy: Mutex::default(),
        writing: Mutex::default(),
    })
}

fn place() -> ServerIdentifier {
    ServerIdentifier {
        toolbox: "dev".into(),
        server: "fs".into(),
    }
}

/// Returns the number of notices when the server lists its one tool with this description.
fn notice_count(pins: &Arc<Pins>, description: &str) -> usize {
    let definition = format!(r#"{{"name":"add","description":"{description}"}}"#);
    let definition = RawJson::parse(&Bytes::from(definition)).unwrap();
    let server = ServerPins::new(Arc::clone(pins), place(), Launch::default());
    let tools = [("add".into(), &definition)].into_iter();
    server.rule(PinMode::Notice, None, tools).notices.len()
}

#[test]
fn listing_tools_again_reads_no_file_before_the_first_contact_is_written() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("server.py"), "pass").unwrap();
    let text = r#"{"toolboxes": {"dev": {"description": "d", "mcpServers": {
        "fs": {"command": "python", "args": ["server.py"], "cwd": "."}
    }}}}"#;
    let file = folder.path().join("workbench.json");
    let environment = crate::config::Environment::new([], folder.path().into(), None);
    let loaded = crate::config::parse(text, &file, &environment).unwrap();
    let server = Arc::clone(&loaded.config.toolboxes["dev"].servers["fs"]);
    let pins = pins(&folder);
    let unobserved = ServerPins::unobserved(Arc::clone(&pins), place(), Arc::clone(&server));
    let listed = |description: &str| {
        let definition = format!(r#"{{"name":"add","description":"{description}"}}"#);
        let definition = RawJson::parse(&Bytes::from(definition)).unwrap();
        let tools = [("add".into(), &definition)].into_iter();
        unobserved.rule(PinMode::Notice, None, tools).notices.len()
    };
    assert_eq!(listed("Adds"), 0);
    assert_eq!(listed("Adds, and more"), 1);
    assert!(!pins.programs.has_read_files(), "the script was read");
    pins.record();
    assert!(pins.programs.has_read_files());
}

#[test]
fn a_reported_change_counts_before_it_is_written() {
    let folder = TempDir::new().unwrap();
    let pins = pins(&folder);
    assert_eq!(notice_count(&pins, "Adds"), 0);
    // A second list of a server that was just seen for the first time is compared with the first.
    assert_eq!(notice_count(&pins, "Adds, and more"), 1);
    assert_eq!(notice_count(&pins, "Adds, and more"), 1, "not reported");
    pins.mark_reported(NoticeScope::Toolbox(&place().toolbox));
    assert_eq!(notice_count(&pins, "Adds, and more"), 0);
    assert_eq!(notice_count(&pins, "Adds, and much more"), 1);
    pins.record();
    assert!(!pins.has_news());
    assert_eq!(notice_count(&pins, "Adds, and more"), 0);
    assert_eq!(notice_count(&pins, "Adds, and much more"), 1);
}

#[test]
fn a_change_that_is_not_reported_is_not_written() {
    let folder = TempDir::new().unwrap();
    let pins = pins(&folder);
    notice_count(&pins, "Adds");
    pins.record();
    let lock = pins.lock().unwrap();
    notice_count(&pins, "Adds, and more");
    pins.mark_reported(NoticeScope::Toolbox(&"other".into()));
    pins.record();
    assert_eq!(pins.lock().unwrap(), lock);
    pins.mark_reported(NoticeScope::Everything);
    pins.record();
    assert_ne!(pins.lock().unwrap(), lock);
    assert_eq!(notice_count(&pins, "Adds, and more"), 0);
}

#[test]
fn definitions_are_stored_while_they_are_pinned_or_seen() {
    let folder = TempDir::new().unwrap();
    let pins = pins(&folder);
    let kept = |description: &str| {
        let text = format!(r#"{{"description":"{description}","name":"add"}}"#);
        pins.text(&place(), Digest::of(text.as_bytes())) == Some(text)
    };
    for description in ["one", "two", "three"] {
        notice_count(&pins, description);
        pins.mark_reported(NoticeScope::Everything);
        pins.record();
    }
    assert_eq!(["one", "two", "three"].map(kept), [true, false, true]);
}
