//! The commands that write the configuration: what they change, what they leave alone, and what they refuse.

mod adding;
mod beginning;
mod removing;
mod switching;

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use crate::harness::{Finished, Setup};

/// A file as somebody keeps it by hand: tabs, CRLF, comments, an unknown note and trailing commas.
const KEPT: &str = "\u{feff}// Ours.\r\n{\r\n\t\"_note\": 1,\r\n\t\"toolboxes\": {\r\n\t\t// Code.\r\n\t\t\"dev\": {\r\n\t\t\t\
     \"description\": \"Development\",\r\n\t\t\t\"mcpServers\": {\r\n\t\t\t\t\"files\": { \"command\": \"files\" }, // the \
     first\r\n\t\t\t\t\"git\": {\r\n\t\t\t\t\t\"command\": \"git-server\",\r\n\t\t\t\t},\r\n\t\t\t},\r\n\t\t},\r\n\t},\r\n}\r\n";

/// Somebody with a home and a directory to work in.
struct Account(TempDir);

impl Account {
    fn new() -> Self {
        let account = Self(TempDir::new().unwrap());
        for folder in ["home", "work"] {
            fs::create_dir(account.path(folder)).unwrap();
        }
        account
    }

    /// With a configuration in the directory.
    fn with(text: &str) -> Self {
        let account = Self::new();
        fs::write(account.config(), text).unwrap();
        account
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    fn config(&self) -> PathBuf {
        self.path("work/workbench-config.json")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.config()).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        Setup::new()
            .working_in(&self.path("work"))
            .env("HOME", self.path("home").to_str().unwrap())
            .start_with(arguments)
            .finish()
    }

    /// Runs a command that must succeed, and gives what it said.
    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let finished = self.run(arguments);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        finished.stderr
    }

    /// Runs a command that must fail with a code and change nothing, and gives what it said.
    #[track_caller]
    fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let before = fs::read(self.config()).ok();
        let finished = self.run(arguments);
        assert_eq!(finished.status.code(), Some(code), "{}", finished.stderr);
        assert_eq!(fs::read(self.config()).ok(), before, "nothing is written");
        assert_eq!(finished.stdout, [""; 0]);
        finished.stderr
    }
}
