//! Every frame that is not taken out is written once, whole and in order.

use std::{collections::BTreeMap, io::IoSlice};

use bytes::Bytes;
use proptest::{prelude::*, sample::Index};
use rawjson::RawJson;

use super::super::{Frame, FrameTicket, Outbox, Outgoing, RequestId, notification};

#[derive(Debug, Clone)]
enum Step {
    /// A frame with parameters of this size.
    Push(usize),
    /// At most so many bytes go out, of at most so many slices.
    Write(usize, usize),
    Remove(Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![3_usize..40, Just(16 * 1024), 16_383_usize..16_390];
    let step = prop_oneof![
        3 => size.prop_map(Step::Push),
        2 => (0_usize..60, 1_usize..5).prop_map(|(most, slices)| Step::Write(most, slices)),
        1 => (Just(20_000_usize), 1_usize..9).prop_map(|(most, slices)| Step::Write(most, slices)),
        2 => any::<Index>().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..40)
}

/// Returns a value of this size.
fn value(serial: usize, size: usize) -> RawJson {
    let text = format!("[{}{serial}]", " ".repeat(size.saturating_sub(3)));
    RawJson::parse(&Bytes::from(text)).unwrap()
}

fn frame(serial: usize, size: usize) -> Frame {
    notification("m", Some(&value(serial, size)))
}

/// An outbox, and a model of its content.
#[derive(Default)]
struct Trial {
    outbox: Outbox,
    tickets: Vec<FrameTicket>,
    /// The frames that were not removed, with the text before each in the stream.
    frames: BTreeMap<FrameTicket, Vec<u8>>,
    written: Vec<u8>,
}

impl Trial {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Push(size) => {
                let (ticket, text) = self.push(self.tickets.len(), *size);
                self.tickets.push(ticket);
                assert_eq!(
                    self.frames.insert(ticket, text.into()),
                    None,
                    "a ticket was given twice"
                );
            }
            Step::Write(most, slices) => self.write(*most, *slices),
            Step::Remove(which) if !self.tickets.is_empty() => {
                let ticket = *which.get(&self.tickets);
                let waits = self.frames.contains_key(&ticket) && !self.has_started(ticket);
                assert_eq!(self.outbox.remove(ticket), waits, "{ticket:?}");
                if waits {
                    self.frames.remove(&ticket);
                }
            }
            Step::Remove(_) => {}
        }
        self.check();
    }

    /// Pushes a message of one of the kinds. Returns the text that must be written for it.
    fn push(&mut self, serial: usize, size: usize) -> (FrameTicket, String) {
        let value = value(serial, size);
        let text = value.as_str();
        match serial % 3 {
            0 => (
                self.outbox.push(frame(serial, size)),
                format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{text}}}\n"),
            ),
            1 => (
                self.outbox.push(Outgoing::Request {
                    id: 7,
                    method: "m",
                    params: (&value).into(),
                }),
                format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{text}}}\n"),
            ),
            _ => (
                self.outbox.push(Outgoing::result(
                    &RequestId::from_json(RawJson::of(&"a")).unwrap(),
                    &value,
                )),
                format!("{{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{text}}}\n"),
            ),
        }
    }

    fn write(&mut self, most: usize, slices: usize) {
        let mut room = vec![IoSlice::new(&[]); slices];
        let filled = self.outbox.fill(&mut room);
        assert_eq!(filled == 0, self.outbox.is_empty());
        assert!(room[..filled].iter().all(|slice| !slice.is_empty()));
        let ready: Vec<u8> = room[..filled]
            .iter()
            .flat_map(|slice| slice.to_vec())
            .collect();
        let taken = most.min(ready.len());
        self.written.extend_from_slice(&ready[..taken]);
        self.outbox.advance(taken);
    }

    fn has_started(&self, ticket: FrameTicket) -> bool {
        let before = self.frames.range(..ticket).map(|(_, text)| text.len());
        self.written.len() > before.sum::<usize>()
    }

    fn check(&self) {
        let all: usize = self.frames.values().map(Vec::len).sum();
        let waiting = all - self.written.len();
        assert_eq!(self.outbox.len(), waiting);
        assert_eq!(self.outbox.is_empty(), waiting == 0);
        for ticket in self.frames.keys() {
            assert_eq!(
                self.outbox.has_started(*ticket),
                self.has_started(*ticket),
                "{ticket:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn frames_that_are_not_withdrawn_are_written_once_and_in_order(steps in steps()) {
        let mut trial = Trial::default();
        for step in &steps {
            trial.take(step);
        }
        while !trial.outbox.is_empty() {
            trial.write(100_000, 3);
        }
        let all: Vec<u8> = trial.frames.into_values().flatten().collect();
        prop_assert!(trial.written == all);
    }
}

#[test]
fn a_frame_has_started_with_its_first_byte() {
    let mut outbox = Outbox::default();
    let (first, second) = (outbox.push(frame(1, 20_000)), outbox.push(frame(2, 3)));
    outbox.advance(0);
    assert!(!outbox.has_started(first) && !outbox.has_started(second));
    outbox.advance(1);
    assert!(outbox.has_started(first) && !outbox.has_started(second));
    assert!(!outbox.remove(first), "it is too late");
    assert!(outbox.remove(second));
    assert!(!outbox.remove(second), "it is gone");
    outbox.advance(outbox.len());
    assert!(outbox.is_empty() && outbox.has_started(first));
    assert!(!outbox.remove(first), "it has been written");
}
