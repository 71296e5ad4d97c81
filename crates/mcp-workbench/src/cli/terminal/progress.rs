//! What is going on, on live lines of stderr: only on a terminal, only once it takes a moment, and gone at the end.

use std::{
    io::{self, IsTerminal},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{
    cut,
    look::{is_capable, width_of},
};
use crate::{cli::output, config::Environment, visible::visible};

/// What is over before this is not shown.
const APPEARS_AFTER: Duration = Duration::from_secs(1);

/// How often the lines are drawn anew.
const DRAWN_EVERY: Duration = Duration::from_millis(200);

/// How many items are shown at most; the others are counted.
const MAX_LINES: usize = 8;

/// Moves up so many lines and clears what is below; the number stands in between.
const ERASE: (&str, &str) = ("\r\u{1b}[", "A\u{1b}[J");

/// The display of one command. Cheap to clone; all clones are one display.
#[derive(Clone)]
pub(in crate::cli) struct Progress {
    /// Nothing where there is no terminal.
    state: Option<Arc<Mutex<State>>>,
}

struct State {
    title: String,
    since: Instant,
    items: Vec<Item>,
    /// How it goes on, in words.
    note: String,
    done: usize,
    /// How many items there will be, where that is known.
    total: usize,
    /// The lines of ours that stand on the terminal.
    drawn: Vec<String>,
    /// Whether the lines stay away, because a person is asked something.
    paused: bool,
}

struct Item {
    number: usize,
    label: String,
    since: Instant,
}

impl Progress {
    /// A display on stderr, if that is a terminal which can show it.
    pub(in crate::cli) fn on_stderr(environment: &Environment, title: &str) -> Self {
        let shown = io::stderr().is_terminal() && is_capable(environment);
        let state = || State {
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

    /// Whether there is a person who sees it.
    pub(in crate::cli) fn is_seen(&self) -> bool {
        self.state.is_some()
    }

    /// Says how many items there will be.
    pub(in crate::cli) fn expect(&self, total: usize) {
        if let Some(mut state) = self.state() {
            state.total = total;
        }
    }

    /// Begins an item, which is a line until it is done.
    pub(in crate::cli) fn begin(&self, number: usize, label: &str) {
        if let Some(mut state) = self.state() {
            state.items.push(Item {
                number,
                label: label.to_owned(),
                since: Instant::now(),
            });
        }
    }

    /// Says how it goes on; the last such words are a line of their own.
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

    /// Says something that stays, above the live lines; nothing where nobody sees it.
    pub(in crate::cli) fn say(&self, text: &str) {
        if let Some(mut state) = self.state() {
            output::live(&state.erased());
            output::remark(text);
        }
    }

    /// Takes the live lines away while a person is asked something.
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

    /// Does some work, and shows how it goes meanwhile.
    pub(in crate::cli) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        // The lines go even where the work is given up.
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
                if lines != state.drawn {
                    let erased = state.erased();
                    output::live(&format!("{erased}{}\n", lines.join("\n")));
                    state.drawn = lines;
                }
            }
        }
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.state.as_ref()?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// What takes the lines away that stand there.
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
        let lines = lines.iter().map(|line| cut(&visible(line), width));
        lines.collect()
    }
}

/// Takes the live lines away.
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

    fn state(now: Instant, items: usize) -> State {
        let items = (0..items).map(|number| Item {
            number,
            label: format!("dev/{number}"),
            since: now,
        });
        State {
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
    fn lines_are_taken_away_once() {
        let mut state = state(Instant::now(), 1);
        assert_eq!(state.erased(), "");
        state.drawn = vec![String::new(); 2];
        assert_eq!(state.erased(), "\r\u{1b}[2A\u{1b}[J");
        assert_eq!(state.erased(), "");
    }
}
