//! The keys of seals.

use std::fs;

use pretty_assertions::assert_eq;

use super::*;

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Resolves a file with this `seal` in a folder with keys. Returns whether there are keys, or the faults.
fn resolved(written: &str) -> Result<bool, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str, mode: u32| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    write("good.key", &format!("{KEY}\n"), 0o600);
    write("group.key", KEY, 0o640);
    write("others.key", KEY, 0o604);
    write("short.key", &KEY[1..], 0o600);
    let variables = [("GOOD", KEY), ("SHORT", "short")];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let environment = Environment::new(variables, "/".into(), None);
    let text = format!(r#"{{"seal": {written}, "toolboxes": {{}}}}"#);
    match parse(&text, &folder.path().join("c.json"), &environment) {
        Ok(loaded) => Ok(loaded.config.seal.is_some()),
        Err(problems) => Err(problems.iter().map(|it| it.fault.to_string()).collect()),
    }
}

#[test]
fn a_key_is_taken_from_a_private_file_or_a_variable() {
    for (written, expected) in [
        ("null", false),
        (r#"{"key": "${file:good.key}"}"#, true),
        (r#"{"key": "${GOOD}"}"#, true),
        (
            r#"{"key": "${GOOD}", "previousKey": "${file:good.key}"}"#,
            true,
        ),
    ] {
        assert_eq!(resolved(written), Ok(expected), "{written}");
    }
}

#[test]
fn unusable_keys_are_refused() {
    let literal = format!(r#"{{"key": "{KEY}"}}"#);
    let short = "the key is shorter than 32 characters";
    let missing = "the key is missing";
    #[cfg(unix)]
    let exposed = "other users can read the file of the key";
    for (written, expected) in [
        ("{}", "`key` is missing"),
        (r#"{"key": ""}"#, "the key is empty"),
        (&literal, "the key is written into the configuration"),
        (r#"{"key": "${file:short.key}"}"#, short),
        (r#"{"key": "${SHORT}"}"#, short),
        (r#"{"key": "${GOOD}", "previousKey": "${SHORT}"}"#, short),
        (r#"{"key": "${file:gone.key}"}"#, missing),
        (r#"{"key": "${GONE}"}"#, missing),
        #[cfg(unix)]
        (r#"{"key": "${file:group.key}"}"#, exposed),
        #[cfg(unix)]
        (r#"{"key": "${file:others.key}"}"#, exposed),
        (r#"{"key": "${GOOD}", "keys": 1}"#, "unknown key `keys`"),
    ] {
        let faults = resolved(written).unwrap_err();
        assert!(
            faults.iter().any(|it| it == expected),
            "{written}: {faults:?}"
        );
    }
}

#[test]
fn the_address_of_a_replica_needs_a_key() {
    let with = |rest: &str| {
        let environment = Environment::new(
            [("KEY".into(), KEY.into()), ("IP".into(), "10.0.0.1".into())],
            "/".into(),
            None,
        );
        let text =
            format!(r#"{{"replicaAddress": "http://${{IP}}:87", {rest} "toolboxes": {{}}}}"#);
        parse(&text, Path::new("/etc/c.json"), &environment)
    };
    let config = with(r#""seal": {"key": "${KEY}"},"#).unwrap().config;
    let address = config.replica_address.map(|it| it.to_string());
    assert_eq!(address.as_deref(), Some("http://10.0.0.1:87/"));
    assert!(config.auto_open, "toolboxes are open in one replica only");
    for (written, shown) in [
        ("redis://:hunter2hunter2@redis:6379/1", true),
        ("rediss://redis", true),
        ("https://redis", false),
        ("redis", false),
    ] {
        let loaded = with(&format!(
            r#""seal": {{"key": "${{KEY}}"}}, "store": "{written}","#
        ));
        let text = match &loaded {
            Ok(loaded) => format!("{:?}", loaded.config.store),
            Err(problems) => problems.to_string(),
        };
        assert_eq!(loaded.is_ok(), shown, "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let faults = with(r#""store": "redis://redis","#).unwrap_err();
    assert_eq!(faults.iter().len(), 2, "both need a key");
    let faults = with("").unwrap_err();
    let faults: Vec<String> = faults.iter().map(|it| it.fault.to_string()).collect();
    assert_eq!(faults, ["this needs `seal`"]);
}
