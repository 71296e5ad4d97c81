//! The limits of each principal: requests in flight, requests per second and bytes per minute.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{ALICE, BOB, Caller, ERAS, GUEST, serve};
use crate::harness::{HttpConnection, HttpResponse, Script, Setup, TIMEOUT, poll, request_text};

/// Returns the status, the time to come back, and the message of a refusal.
fn refused(response: &HttpResponse) -> (u16, u64, String) {
    let after = response.head.header("retry-after").unwrap_or("0");
    let body: Value = serde_json::from_str(&response.body).unwrap_or_default();
    let message = body["error"]["message"].as_str().unwrap_or_default();
    (
        response.head.status,
        after.parse().unwrap(),
        message.to_owned(),
    )
}

#[test]
fn requests_in_flight_are_limited_per_principal() {
    for era in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let gate = folder.path().join("gate");
        let script = Script::named(&["hold", "echo"]).on_call(
            "hold",
            &json!([{"awaitFile": gate}, {"answer": {"content": []}}]).to_string(),
        );
        let limits = json!({"requestsInFlight": 2});
        let served = serve(Setup::one(&script).top("limits", limits), &json!({}));
        let [alice, bob] = [ALICE, BOB].map(|token| Caller::new(&served, token, era));
        let mut held = [alice.begin("hold", "{}"), alice.begin("hold", "{}")];
        for connection in &mut held {
            assert!(connection.head().is_stream(), "{era:?}");
        }
        let message = "more than 2 requests at once: retry in 1 s".to_owned();
        assert_eq!(refused(&alice.call("echo", "{}")), (429, 1, message));
        assert_eq!(bob.call("echo", "{}").head.status, 200, "{era:?}");
        std::fs::write(&gate, "").unwrap();
        let status = poll(TIMEOUT, || {
            let status = alice.call("echo", "{}").head.status;
            (status == 200).then_some(status)
        });
        assert_eq!(status, Some(200), "{era:?}");
    }
}

#[test]
fn a_client_beyond_its_limit_can_still_cancel() {
    let folder = tempfile::tempdir().unwrap();
    let gate = json!([{"awaitFile": folder.path().join("gate")}]).to_string();
    let script = Script::named(&["hold"]).on_call("hold", &gate);
    let limits = json!({"requestsInFlight": 1});
    let served = serve(Setup::one(&script).top("limits", limits), &json!({}));
    let alice = Caller::new(&served, ALICE, super::Era::Legacy);
    let mut held = alice.begin("hold", "{}");
    assert!(held.head().is_stream());
    assert_eq!(alice.call("hold", "{}").head.status, 429);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let response = served.connection().ask(&alice.own(served.post(cancel)));
    assert_eq!(response.head.status, 202);
    let ping = request_text("2", "ping", "{}");
    let served_again = poll(TIMEOUT, || {
        let response = served.connection().ask(&alice.own(served.post(&ping)));
        (response.head.status == 200).then_some(())
    });
    assert_eq!(served_again, Some(()));
}

#[test]
fn requests_per_second_are_limited_per_principal_and_client() {
    for era in ERAS {
        let limits = json!({"requestsPerSecond": 1, "requestBurst": 4});
        let setup = Setup::one(&Script::new()).top("limits", limits);
        let guest = json!({"limits": {"requestsPerSecond": 0}});
        let served = serve(setup, &guest);
        let [alice, guest] = [ALICE, GUEST].map(|token| Caller::new(&served, token, era));
        // Far more than the seconds that they take.
        let calls = |caller: &Caller<'_>| -> Vec<HttpResponse> {
            let mut begun: Vec<_> = (0..100).map(|_| caller.begin("echo", "{}")).collect();
            begun.iter_mut().map(HttpConnection::response).collect()
        };
        let responses = calls(&alice);
        let first = responses.iter().find(|it| it.head.status != 200);
        let message = "more than 1 requests per second: retry in 1 s".to_owned();
        assert_eq!(refused(first.expect("a limit")), (429, 1, message));
        assert!(responses.iter().any(|it| it.head.status == 200));
        let free = calls(&guest);
        assert!(free.iter().all(|it| it.head.status == 200), "{era:?}");
    }
}

#[test]
fn bytes_of_requests_and_results_are_limited_and_a_reload_applies() {
    let result = json!({"content": [{"type": "text", "text": "x".repeat(100_000)}]});
    let script = Script::named(&["small", "large"])
        .answers("small", r#"{"content":[]}"#)
        .answers("large", &result.to_string());
    for era in ERAS {
        for (tool, arguments) in [
            ("large", "{}".to_owned()),
            ("small", json!({"text": "x".repeat(100_000)}).to_string()),
        ] {
            let limits = json!({"bytesPerMinute": 20_000});
            let served = serve(Setup::one(&script).top("limits", limits), &json!({}));
            let [alice, bob] = [ALICE, BOB].map(|token| Caller::new(&served, token, era));
            assert_eq!(alice.call(tool, &arguments).head.status, 200);
            let (status, seconds, message) = refused(&alice.call("small", "{}"));
            assert_eq!(status, 429, "{era:?} {tool}");
            // Five times as many as in a minute, so about four minutes.
            assert!((180..=300).contains(&seconds), "{era:?} {tool} {seconds}");
            assert!(
                message.starts_with("more than 20000 bytes per minute: retry in "),
                "{message}"
            );
            assert_eq!(bob.call("small", "{}").head.status, 200);
            let config = served.workbench.setup.config();
            let text = std::fs::read_to_string(&config).unwrap();
            let larger = text.replace("20000", "2000000");
            assert_ne!(larger, text);
            std::fs::write(&config, larger).unwrap();
            let served_again = poll(TIMEOUT, || {
                let response = alice.call("small", "{}");
                (response.head.status == 200).then_some(())
            });
            assert_eq!(served_again, Some(()), "{era:?} {tool}");
        }
    }
}

#[test]
fn faults_of_limits_have_a_place_and_a_remedy() {
    let setup = Setup::one(&Script::new())
        .top(
            "limits",
            json!({"requestBurst": 0, "bytesPerMinute": 12, "requestPerSecond": 3}),
        )
        .top(
            "clients",
            json!({"guest": {"limits": {"requestsInFlight": -1}}}),
        );
    let finished = setup.start().finish();
    for part in [
        "limits.requestBurst: ",
        "limits.bytesPerMinute: ",
        "limits.requestPerSecond: unknown key `requestPerSecond`\n  hint: did you mean `requestsPerSecond`?",
        "clients.guest.limits.requestsInFlight: ",
    ] {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
}
