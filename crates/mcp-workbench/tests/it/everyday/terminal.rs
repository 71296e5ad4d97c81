//! A command on a terminal: a pseudo-terminal whose other side the test holds.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex},
    thread,
};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::harness::{Setup, TIMEOUT, poll};

/// A command whose stdin, stdout and stderr are one terminal.
pub(crate) struct OnTerminal {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    /// The directory goes with it.
    pub(crate) setup: Setup,
}

impl OnTerminal {
    /// Starts a command on a terminal of 80 columns.
    pub(crate) fn start(setup: Setup, arguments: &[&str]) -> Self {
        setup.write_config();
        let mut command = setup.command();
        command.arg("--config").arg(setup.config()).args(arguments);
        Self::run(setup, command)
    }

    /// Starts the workbench without arguments on a terminal.
    pub(crate) fn start_bare(setup: Setup) -> Self {
        let command = setup.command();
        Self::run(setup, command)
    }

    fn run(setup: Setup, mut command: Command) -> Self {
        let (master, slave) = terminal();
        command
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave);
        let child = command.spawn().expect("the workbench can be started");
        // The command holds the other side of the terminal too: with it gone, reading ends with the child.
        drop(command);
        let keyboard = File::from(master);
        let shown = Arc::default();
        let (mut screen, seen) = (keyboard.try_clone().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                let seen: &Mutex<Vec<u8>> = &seen;
                seen.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self {
            child,
            keyboard,
            shown,
            setup,
        }
    }

    /// Everything that was shown so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until something is shown.
    pub(crate) fn wait_for(&self, part: &str) {
        let seen = poll(TIMEOUT, || self.text().contains(part).then_some(()));
        assert!(seen.is_some(), "no {part:?} in {}", self.text());
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        self.keyboard
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    pub(crate) fn finish(&mut self) -> ExitStatus {
        let status = poll(TIMEOUT, || self.child.try_wait().unwrap());
        status.unwrap_or_else(|| panic!("it does not end: {}", self.text()))
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn terminal() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size).unwrap();
    (master, slave)
}
