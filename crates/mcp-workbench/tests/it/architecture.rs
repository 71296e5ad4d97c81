//! The architecture, checked on the text of the source: directions between modules, who may touch
//! the outside, and the limits of the house.

use std::{
    fs, iter,
    path::{Path, PathBuf},
};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// The modules from top to bottom. A module uses only modules below it.
const LAYERS: &[&str] = &[
    "main",
    "cli",
    "host",
    "serve",
    "meta",
    "workbench",
    "native",
    "toolbox",
    "scripts",
    "downstream",
    "oauth",
    "history",
    "otel",
    "metrics",
    "audit",
    "lock",
    "policy",
    "clients",
    "store",
    "server_cache",
    "events",
    "config",
    "call",
    "budget",
    "jq",
    "shapes",
    "list_page",
    "era",
    "dial",
    "pipe",
    "wire",
    "trace",
    "alarm",
    "rare",
    "telemetry",
    "offload",
    "contain",
    "seal",
    "private_files",
    "plain_file",
    "program_lookup",
    "near",
    "moment",
    "visible",
    "sha256",
    "sync",
];

/// Modules that do no IO and know nothing of time or tasks.
const PURE: &[&str] = &[
    "policy",
    "budget",
    "list_page",
    "era",
    "wire",
    "near",
    "visible",
];

/// The other crates of the program. They do no IO either.
const PURE_CRATES: &[&str] = &["ident", "rawjson", "search"];

/// The most lines that a file may have.
const MOST_LINES: usize = 600;

/// Types whose methods are all in the file that declares the type, so that a reader finds them in one place.
const IN_ONE_FILE: &[&str] = &[
    "Session",
    "Calls",
    "ServerHandle",
    "Connection",
    "Workbench",
    "Native",
];

/// A rule about who may do something: the texts that give it away, and the paths under `src/` that
/// may hold them.
struct Privilege {
    what: &'static str,
    texts: &'static [&'static str],
    allowed: &'static [&'static str],
}

const PRIVILEGES: &[Privilege] = &[
    Privilege {
        what: "start processes",
        texts: &["process::Command"],
        allowed: &[
            "downstream/process/",
            "downstream/stdio",
            "cli/oauth/browser.rs",
            "cli/ui/commands.rs",
            "host/launch.rs",
            "store/tests.rs",
        ],
    },
    Privilege {
        what: "print",
        texts: &["println!", "print!("],
        allowed: &["cli/output.rs"],
    },
    Privilege {
        what: "read the environment",
        texts: &["env::var", "env::temp_dir", "env::home_dir"],
        allowed: &["config/env", "cli/"],
    },
];

/// A file of the project.
struct Source {
    /// Its path below the folder that was read.
    path: String,
    text: String,
}

impl Source {
    /// The top module that a file under `src/` belongs to.
    fn module(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.trim_end_matches(".rs")
    }

    /// The text without comments that stand on lines of their own.
    fn code(&self) -> String {
        let lines = self.text.lines();
        let code = lines.filter(|line| !line.trim_start().starts_with("//"));
        code.collect::<Vec<_>>().join("\n")
    }

    /// Returns the types without parameters that the file has inherent `impl` blocks for, except blocks for one platform.
    fn inherent_impls(&self) -> impl Iterator<Item = &str> {
        let before = iter::once("").chain(self.text.lines());
        let lines = before.zip(self.text.lines());
        lines
            .filter(|(before, _)| !before.starts_with("#[cfg"))
            .filter_map(|(_, line)| line.strip_prefix("impl ")?.strip_suffix(" {"))
            .filter(|name| name.chars().all(char::is_alphanumeric))
    }

    /// Returns whether the file declares a type of this name.
    fn declares(&self, name: &str) -> bool {
        let code = self.code();
        ["struct", "enum"].into_iter().any(|kind| {
            let begin = format!("{kind} {name}");
            let mut ends = code.match_indices(&begin).map(|(at, _)| at + begin.len());
            ends.any(|end| code[end..].starts_with([' ', '(', '<', ';']))
        })
    }

    /// The code, and what its lists of imports name, each with the module in front: `process::{Child, Command}` is
    /// also `process::Child` and `process::Command`.
    fn code_and_imports(&self) -> String {
        let code = self.code();
        let mut imports = String::new();
        for (at, opened) in code.match_indices("::{") {
            let before = code[..at].rsplit(|it: char| !it.is_alphanumeric() && it != '_');
            let module = before.into_iter().next().unwrap_or_default();
            let list = code[at + opened.len()..].split('}').next();
            for name in list.unwrap_or_default().split(',') {
                imports.push_str(&format!("\n{module}::{}", name.trim()));
            }
        }
        code + &imports
    }
}

fn sources(folder: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let relative = path.strip_prefix(folder).unwrap();
                found.push(Source {
                    path: relative.to_str().unwrap().replace('\\', "/"),
                    text: fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    assert!(!found.is_empty(), "no source in {}", folder.display());
    found
}

fn product() -> Vec<Source> {
    sources(&Path::new(CRATE).join("src"))
}

/// Returns the files of [`PURE_CRATES`].
fn pure_crates() -> impl Iterator<Item = Source> {
    let names = PURE_CRATES.iter();
    names.flat_map(|name| sources(&Path::new(CRATE).join(format!("../{name}/src"))))
}

/// The top modules that a text names by `crate::…`, groups included.
fn used_modules(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => used.extend(first_names(group)),
            None => used.push(leading_name(rest)),
        }
    }
    used.retain(|name| !name.is_empty());
    used
}

/// The first name of each entry of a group, up to the brace that closes it.
fn first_names(group: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let mut names = vec![leading_name(group.trim_start())];
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(leading_name(group[at + 1..].trim_start())),
            _ => {}
        }
    }
    names
}

fn leading_name(text: &str) -> String {
    text.chars()
        .take_while(|char| char.is_alphanumeric() || *char == '_')
        .collect()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == module)
}

/// Ends the test with all findings at once.
#[track_caller]
fn none(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

#[test]
fn groups_of_imports_are_understood() {
    let code = "use crate::{\n    config::{Config, Server},\n    ident::Name,\n    wire,\n};\nuse crate::call::Call;\nfn f(x: crate::era::Era) {}\npub(crate) fn g() {}\n$crate::rare";
    assert_eq!(
        used_modules(code),
        ["config", "ident", "wire", "call", "era", "rare"]
    );
}

#[test]
fn every_module_has_its_layer() {
    let mut findings = Vec::new();
    for source in product() {
        let module = source.module();
        if module != "lib" && layer(module).is_none() {
            findings.push(format!("{}: {module} has no place in LAYERS", source.path));
        }
    }
    none(&findings);
}

#[test]
fn modules_use_only_modules_below_them() {
    let mut findings = Vec::new();
    for source in product() {
        let module = source.module();
        let Some(own) = layer(module) else { continue };
        for used in used_modules(&source.code()) {
            let Some(other) = layer(&used) else { continue };
            if other < own {
                findings.push(format!("{}: {module} uses {used}", source.path));
            }
        }
    }
    none(&findings);
}

#[test]
fn pure_modules_do_no_io() {
    let mut findings = Vec::new();
    let product = product().into_iter();
    let pure = product.filter(|source| PURE.contains(&source.module()));
    for source in pure.chain(pure_crates()) {
        for word in ["tokio", "async fn", "std::fs", "std::net", "Instant::now"] {
            if source.code().contains(word) {
                findings.push(format!("{}: {word}", source.path));
            }
        }
    }
    none(&findings);
}

#[test]
fn only_listed_files_do_io() {
    let mut findings = Vec::new();
    for source in product() {
        for privilege in PRIVILEGES {
            let mut allowed = privilege.allowed.iter();
            if allowed.any(|begin| source.path.starts_with(begin)) {
                continue;
            }
            let code = source.code_and_imports();
            if privilege.texts.iter().any(|text| code.contains(text)) {
                findings.push(format!("{} may not {}", source.path, privilege.what));
            }
        }
    }
    none(&findings);
}

#[test]
fn the_methods_of_a_type_are_in_one_file() {
    let mut findings = Vec::new();
    for source in product() {
        for name in source.inherent_impls() {
            if IN_ONE_FILE.contains(&name) && !source.declares(name) {
                findings.push(format!("{}: impl {name}", source.path));
            }
        }
    }
    none(&findings);
}

/// Methods in a child of the module that declares the type are fine; methods in another module are functions there.
#[test]
fn a_type_has_methods_only_in_its_module_and_one_impl_per_file() {
    let sources = product();
    let mut findings = Vec::new();
    for source in &sources {
        let names: Vec<&str> = source.inherent_impls().collect();
        for (at, name) in names.iter().enumerate() {
            let mut own = sources.iter().filter(|it| it.module() == source.module());
            if names[..at].contains(name) {
                findings.push(format!("{}: a second impl {name}", source.path));
            } else if !own.any(|it| it.declares(name)) {
                findings.push(format!("{}: impl {name} of another module", source.path));
            }
        }
    }
    none(&findings);
}

#[test]
fn no_source_file_has_forbidden_words() {
    let refused = [["to", "do"].concat(), ["fix", "me"].concat()];
    let mut findings = Vec::new();
    for source in product().into_iter().chain(pure_crates()) {
        for (number, line) in source.text.lines().enumerate() {
            let line = line.to_lowercase();
            let mut words = line.split(|char: char| !char.is_alphanumeric());
            if let Some(word) =
                words.find(|word| word.contains("upstream") || refused.iter().any(|it| it == word))
            {
                findings.push(format!("{}:{}: {word}", source.path, number + 1));
            }
        }
    }
    none(&findings);
}

#[test]
fn files_stay_short() {
    let root = Path::new(CRATE).parent().unwrap();
    let mut findings = Vec::new();
    for source in sources(root) {
        let lines = source.text.lines().count();
        if lines > MOST_LINES {
            findings.push(format!("{}: {lines} lines", source.path));
        }
    }
    none(&findings);
}

#[test]
fn every_file_has_a_module_header() {
    let mut findings = Vec::new();
    for source in product().into_iter().chain(pure_crates()) {
        let tests = source.path.ends_with("tests.rs");
        if !tests && !source.text.starts_with("//!") {
            findings.push(format!("{}: no header", source.path));
        }
    }
    none(&findings);
}

#[test]
fn every_test_file_is_in_main() {
    let folder: PathBuf = Path::new(CRATE).join("tests/it");
    let main = fs::read_to_string(folder.join("main.rs")).unwrap();
    let mut findings = Vec::new();
    for source in sources(&folder) {
        let listed = main.contains(&format!("mod {};", source.module()));
        if source.module() != "main" && !listed {
            findings.push(format!("{} is not in main.rs", source.path));
        }
    }
    none(&findings);
}

#[test]
fn cargo_run_without_a_package_runs_the_product() {
    let root = Path::new(CRATE).ancestors().nth(2).unwrap();
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    // The README's first command is `cargo run`.
    let members = "\ndefault-members = [\"crates/mcp-workbench\"]\n";
    assert!(manifest.contains(members), "{manifest}");
}
