//! Live progress lines on stderr. They appear only on a terminal, only after a second, and are erased at the end.

use std::{
    io::{self, IsTerminal},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{
    cut,
    style::{is_capable, width_of},
};
use crate::{cli::output, config::Environment, sync::lock, visible::visible};

/// Work that ends earlier shows no progress.
const APPEARS_AFTER: Duration = Duration::from_secs(1);

const DRAWN_EVERY: Duration = Duration::from_millis(200);

/// The number of items that get a line; the others are counted.
const MAX_LINES: usize = 8;

/// The sequence that moves the cursor up and clears below it; the number of lines goes in between.
const ERASE: (&str, &str) = ("\r\u{1b}[", "A\u{1b}[J");

/// The progress display of one command. All clones share one display.
#[derive(Clone)]
pub(in crate::cli) struct Progress {
    /// `None` if stderr is not a terminal.
    state: Option<Arc<Mutex<ProgressState>>>,
}

struct ProgressState {
    title: String,
    since: Instant,
    items: Vec<Item>,
    /// The latest progress message.
    note: String,
    done: usize,
    /// The expected number of items; 0 if unknown.
    total: usize,
    /// The lines that are on the terminal now.
    drawn: Vec<String>,
    /// True while the user is asked something, so that the lines do not overwrite the prompt.
    paused: bool,
}

struct Item {
    number: usize,
    label: String,
    since: Instant,
}

impl Progress {
    /// Creates a display on stderr, which shows nothing if stderr is not a capable terminal.
    pub(in crate::cli) fn on_stderr(environment: &Environment, title: &str) -> Self {
        let shown = io::stderr().is_terminal() && is_capable(environment);
        let state = || ProgressState {
            title: title.to_owned(),
            since: Instant::now(),
            items: Vec::new(),
            note: String::new(),
            done: 0,
            total: 0,
            drawn: Vec::new(),
            paused: false,
        };
        Self {
            state: shown.then(|| Arc::new(Mutex::new(state()))),
        }
    }

    /// Returns true if the display is on a terminal.
    pub(in crate::cli) fn is_seen(&self) -> bool {
        self.state.is_some()
    }

    /// Sets the expected number of items.
    pub(in crate::cli) fn expect(&self, total: usize) {
        if let Some(mut state) = self.state() {
            state.total = total;
        }
    }

    /// Adds an item, which has a line until it is done.
    pub(in crate::cli) fn begin(&self, number: usize, label: &str) {
        if let Some(mut state) = self.state() {
            state.items.push(Item {
                number,
                label: label.to_owned(),
                since: Instant::now(),
            });
        }
    }

    /// Sets the progress message, which has a line of its own.
    pub(in crate::cli) fn note(&self, note: &str) {
        if let Some(mut state) = self.state() {
            note.clone_into(&mut state.note);
        }
    }

    pub(in crate::cli) fn done(&self, number: usize) {
        if let Some(mut state) = self.state() {
            state.items.retain(|item| item.number != number);
            state.done += 1;
        }
    }

    /// Prints a message above the live lines. Does nothing without a terminal.
    pub(in crate::cli) fn say(&self, text: &str) {
        if let Some(mut state) = self.state() {
            output::live(&state.erased());
            output::remark(text);
        }
    }

    /// Erases the live lines while the user is asked something.
    pub(in crate::cli) fn pause(&self) {
        if let Some(mut state) = self.state() {
            state.paused = true;
            output::live(&state.erased());
        }
    }

    /// Shows the live lines again.
    pub(in crate::cli) fn resume(&self) {
        if let Some(mut state) = self.state() {
            state.paused = false;
        }
    }

    /// Runs a future and redraws the progress meanwhile.
    pub(in crate::cli) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        // Erases the lines also if this future is dropped.
        let _erase = EraseAtEnd(self);
        let mut ticks = interval(DRAWN_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = ticks.tick() => self.draw(),
            }
        }
    }

    fn draw(&self) {
        if let Some(mut state) = self.state() {
            let now = Instant::now();
            if !state.paused && now - state.since >= APPEARS_AFTER {
                let width = width_of(io::stderr());
                let lines = state.lines(now, width.saturating_sub(1));
                // Redrawing equal lines would only make the terminal flicker.
                if lines != state.drawn {
                    let erased = state.erased();
                    output::live(&format!("{erased}{}\n", lines.join("\n")));
                    state.drawn = lines;
                }
            }
        }
    }

    fn state(&self) -> Option<MutexGuard<'_, ProgressState>> {
        let state = self.state.as_ref()?;
        Some(lock(state))
    }
}

impl ProgressState {
    /// Returns the sequence that erases the drawn lines.
    fn erased(&mut self) -> String {
        match std::mem::take(&mut self.drawn).len() {
            0 => String::new(),
            lines => format!("{}{lines}{}", ERASE.0, ERASE.1),
        }
    }

    fn lines(&self, now: Instant, width: usize) -> Vec<String> {
        let seconds = |since: Instant| (now - since).as_secs();
        let mut lines = vec![format!("{} ({} s)", self.title, seconds(self.since))];
        if self.total > 0 {
            lines[0].push_str(&format!(", {} of {} done", self.done, self.total));
        }
        if !self.note.is_empty() {
            lines.push(format!("  {}", self.note));
        }
        for item in self.items.iter().take(MAX_LINES) {
            let mut line = format!("  {}", item.label);
            if seconds(item.since) > 0 {
                line.push_str(&format!(" ({} s)", seconds(item.since)));
            }
            lines.push(line);
        }
        let more = self.items.len().saturating_sub(MAX_LINES);
        if more > 0 {
            lines.push(format!("  … and {more} more"));
        }
        // A line that wraps would break the count of lines to erase.
        let lines = lines.iter().map(|line| cut(&visible(line), width));
        lines.collect()
    }
}

/// Erases the live lines when dropped.
struct EraseAtEnd<'a>(&'a Progress);

impl Drop for EraseAtEnd<'_> {
    fn drop(&mut self) {
        if let Some(mut state) = self.0.state() {
            output::live(&state.erased());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(now: Instant, items: usize) -> ProgressState {
        let items = (0..items).map(|number| Item {
            number,
            label: format!("dev/{number}"),
            since: now,
        });
        ProgressState {
            title: "starting".to_owned(),
            since: now,
            items: items.collect(),
            note: String::new(),
            done: 0,
            total: 0,
            drawn: Vec::new(),
            paused: false,
        }
    }

    #[test]
    fn each_item_is_a_line_and_too_many_are_counted() {
        let now = Instant::now();
        let later = now + Duration::from_secs(3);
        let mut few = state(now, 1);
        (few.done, few.total) = (2, 3);
        few.note = "half of it".to_owned();
        assert_eq!(
            few.lines(later, 80),
            [
                "starting (3 s), 2 of 3 done",
                "  half of it",
                "  dev/0 (3 s)"
            ]
        );
        let lines = state(now, 10).lines(later, 8);
        assert_eq!(lines.len(), MAX_LINES + 2);
        assert_eq!(lines[0], "startin…");
        assert_eq!(
            state(now, 10).lines(later, 80)[MAX_LINES + 1],
            "  … and 2 more"
        );
    }

    #[test]
    fn lines_are_erased_once() {
        let mut state = state(Instant::now(), 1);
        assert_eq!(state.erased(), "");
        state.drawn = vec![String::new(); 2];
        assert_eq!(state.erased(), "\r\u{1b}[2A\u{1b}[J");
        assert_eq!(state.erased(), "");
    }
}
