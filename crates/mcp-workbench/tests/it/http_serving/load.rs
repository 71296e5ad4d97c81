//! Many clients at once: nothing is lost, nothing crosses, and it ends in time.

use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use pretty_assertions::assert_eq;

use crate::harness::{HttpClient, Script, Setup, ToolResult, call_params};

const CLIENTS: usize = 200;
const CALLS: usize = 20;
/// How long all of it may take; a busy machine needs a fraction of it.
const BOUND: Duration = Duration::from_mins(1);

/// A client that makes its calls, and the time that each took.
fn run_client(mut client: HttpClient, number: usize, together: &Barrier) -> Vec<Duration> {
    together.wait();
    let times = (0..CALLS).map(|call| {
        let arguments = format!(
            r#"{{"tool":{{"toolbox":"dev","server":"fs","tool":"echo"}},"arguments":{{"client":{number},"call":{call}}}}}"#
        );
        let start = Instant::now();
        let answer = client.ask("tools/call", &call_params("use_tool", &arguments));
        let took = start.elapsed();
        let echoed = ToolResult::of(&answer).structured();
        assert_eq!(echoed["arguments"]["client"], number, "{}", answer.line);
        assert_eq!(echoed["arguments"]["call"], call, "{}", answer.line);
        took
    });
    times.collect()
}

#[test]
fn two_hundred_concurrent_clients_get_their_own_answers() {
    let served = Setup::one(&Script::new()).serve();
    served.client().open();
    let clients: Vec<HttpClient> = (0..CLIENTS).map(|_| served.client()).collect();
    let together = Barrier::new(CLIENTS);
    let start = Instant::now();
    let mut times: Vec<Duration> = thread::scope(|scope| {
        let clients: Vec<_> = clients
            .into_iter()
            .enumerate()
            .map(|(number, client)| {
                let together = &together;
                scope.spawn(move || run_client(client, number, together))
            })
            .collect();
        clients
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    let took = start.elapsed();
    times.sort_unstable();
    assert_eq!(times.len(), CLIENTS * CALLS);
    let journal = served.workbench.journal("dev", "fs");
    assert_eq!(
        journal.received("tools/call").len(),
        CLIENTS * CALLS,
        "each once"
    );
    assert!(took < BOUND, "{took:?}");
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!(
        "{CLIENTS} clients, {} calls in {took:?}: median {:?}, 99 of 100 within {:?}, worst {:?}",
        times.len(),
        at(50),
        at(99),
        at(100)
    );
}
