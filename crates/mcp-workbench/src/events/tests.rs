use std::sync::Mutex;

use rawjson::RawJson;
use serde_json::json;

use super::*;
use crate::trace::CallSpan;

/// A reader that writes down what it gets.
#[derive(Default)]
struct Notebook(Mutex<Vec<String>>);

impl Notebook {
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Reader for Notebook {
    fn detail(&self) -> EventDetail {
        EventDetail::Hops
    }

    fn take(&self, event: &Event<'_>) {
        let line = match event {
            Event::OperationBegan(operation) => format!("began {}", operation.method),
            Event::OperationEnded(end) => {
                format!("ended {} {:?}", end.outcome.word(), end.reply.is_some())
            }
            Event::HopBegan(hop) => format!("sent {}", hop.operation),
            Event::HopEnded(end) => format!("answered {:?} {:?}", end.error, end.result_bytes),
            _ => "other".to_owned(),
        };
        self.0.lock().unwrap().push(line);
    }
}

fn listened() -> (Arc<Events>, Arc<Notebook>) {
    let (events, notebook) = (Arc::<Events>::default(), Arc::<Notebook>::default());
    events.subscribe(Arc::clone(&notebook) as Arc<dyn Reader>);
    (events, notebook)
}

fn begin(events: &Arc<Events>) -> OperationGuard {
    events.begin(OperationStart {
        request_id: None,
        method: "tools/list".into(),
        target: None,
        tool: None,
        arguments: None,
        params: None,
        meta: None,
        client: EventClient::unknown(),
    })
}

#[test]
fn no_event_is_made_while_nobody_listens() {
    let events = Arc::<Events>::default();
    assert!(!events.is_listened());
    events.emit_with(|| panic!("made for nobody"));
}

#[test]
fn an_operation_ends_once_and_is_cancelled_if_it_is_dropped() {
    let (events, notebook) = listened();
    begin(&events).end(CallOutcome::Ok(3), None);
    drop(begin(&events));
    let expected = [
        "began tools/list",
        "ended ok false",
        "began tools/list",
        "ended cancelled false",
    ];
    assert_eq!(notebook.lines(), expected);
}

#[test]
fn a_hop_belongs_to_its_operation() {
    let (events, notebook) = listened();
    let server = ServerIdentifier {
        toolbox: "dev".into(),
        server: "files".into(),
    };
    let span = CallSpan {
        operation: 7,
        began: Instant::now(),
        trace: None,
    };
    let start = || HopStart {
        span: &span,
        peer: Peer {
            server: server.clone(),
            era: Era::Legacy,
            carrier: Carrier::Pipe,
            revision: None,
            address: None,
            session: None,
        },
        method: "tools/call",
        tool: None,
        target: None,
        request_id: 1,
    };
    events.begin_hop(start()).end(&HopResult {
        error: None,
        response_error: None,
        result: Some(&RawJson::of(&json!({}))),
    });
    drop(events.begin_hop(start()));
    let expected = [
        "sent 7",
        "answered None Some(2)",
        "sent 7",
        "answered Some(\"cancelled\") None",
    ];
    assert_eq!(notebook.lines(), expected);
}

#[test]
fn requests_to_servers_are_observed_only_for_readers_that_want_them() {
    struct WantsOperations;
    impl Reader for WantsOperations {
        fn detail(&self) -> EventDetail {
            EventDetail::Operations
        }

        fn take(&self, _: &Event<'_>) {}
    }
    let events = Arc::<Events>::default();
    events.subscribe(Arc::new(WantsOperations));
    assert!(events.is_listened() && !events.wants_hops() && !events.wants_messages());
    events.subscribe(Arc::<Notebook>::default());
    assert!(events.wants_hops() && !events.wants_messages());
}

#[test]
fn a_reader_that_left_gets_nothing() {
    let (events, notebook) = listened();
    let guard = begin(&events);
    notebook.lines();
    events.unsubscribe(&(Arc::clone(&notebook) as Arc<dyn Reader>));
    assert!(!events.is_listened());
    drop(guard);
    assert!(notebook.lines().is_empty());
}
