//! The redirect of the browser.

use tempfile::tempdir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    super::{Listener, SignIn, SignInError},
    account,
    authority::TestAuthority,
    parameter,
};

/// Sends a request and reads the answer.
async fn send(listener: &str, request: String) -> String {
    let address = listener.trim_start_matches("http://");
    let address = address.trim_end_matches("/callback");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")
}

#[tokio::test]
async fn stray_requests_are_ignored_and_the_redirect_gets_the_outcome() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    let mut listener = Listener::bind(None).await.unwrap();
    let uri = listener.redirect_uri().to_owned();
    let attempt = SignIn::begin(&account, &uri, None).await.unwrap();
    let own = parameter(attempt.address(), "state").unwrap();
    let browser = async {
        // An idle connection, as browsers open them.
        let address = uri
            .trim_start_matches("http://")
            .trim_end_matches("/callback");
        let _silent = TcpStream::connect(address).await.unwrap();
        let strays = [
            (get("/favicon.ico"), "404"),
            (get("/"), "404"),
            (get("/callback"), "400"),
            (
                format!("POST /callback?state={own}&code=x HTTP/1.1\r\n\r\n"),
                "405",
            ),
            (get("/callback?state=other&code=x"), "400"),
            (
                get("/callback?state=<script>alert(1)</script>&code=x"),
                "400",
            ),
        ];
        for (request, status) in strays {
            let answer = send(&uri, request.clone()).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{request} {answer}"
            );
            assert!(!answer.contains("script"), "{answer}");
        }
        send(&uri, get(&format!("/callback?state={own}&code=good"))).await
    };
    let (finished, page) = tokio::join!(attempt.wait(&mut listener), browser);
    finished.unwrap();
    for expected in [
        "HTTP/1.1 200 OK",
        "You are signed in",
        "content-security-policy: default-src 'none'",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.contains(expected), "{page}");
    }
    assert!(!page.contains("<script") && !page.contains("good"));
}

#[tokio::test]
async fn the_answer_of_another_authority_ends_the_sign_in_and_is_not_shown() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    let mut listener = Listener::bind(None).await.unwrap();
    let uri = listener.redirect_uri().to_owned();
    let attempt = SignIn::begin(&account, &uri, None).await.unwrap();
    let own = parameter(attempt.address(), "state").unwrap();
    let mixed_up = format!("/callback?state={own}&code=x&iss=https://evil.example");
    let (waited, page) = tokio::join!(attempt.wait(&mut listener), send(&uri, get(&mixed_up)));
    assert_eq!(waited, Err(SignInError::WrongIssuer));
    assert!(page.contains("You are not signed in"), "{page}");
    assert!(!page.contains("evil"), "{page}");
    assert_eq!(authority.seen("/token").len(), 0);
}

#[tokio::test]
async fn the_listener_times_out() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    let mut listener = Listener::bind(None).await.unwrap();
    let uri = listener.redirect_uri().to_owned();
    let attempt = SignIn::begin(&account, &uri, None).await.unwrap();
    // From here on time advances while all tasks are idle.
    tokio::time::pause();
    let waited = attempt.wait(&mut listener).await;
    assert_eq!(waited, Err(SignInError::Over));
}
