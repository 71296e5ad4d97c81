//! The checks before a call is sent: pins, scanner, permissions and consent apply to the definition that the present
//! instance of a server has announced. One table holds every mode, era, transport, event, change and rule.

mod client;
mod definitions;
mod remote;
mod run;
mod stdio;
mod table;

use run::check;
use table::ServerKind;

#[test]
fn calls_to_legacy_stdio_servers_are_checked_against_the_current_definition() {
    check(ServerKind::LegacyStdio);
}

#[test]
fn calls_to_modern_stdio_servers_are_checked_against_the_current_definition() {
    check(ServerKind::ModernStdio);
}

#[test]
fn calls_to_legacy_http_servers_are_checked_against_the_current_definition() {
    check(ServerKind::LegacyHttp);
}

#[test]
fn calls_to_modern_http_servers_are_checked_against_the_current_definition() {
    check(ServerKind::ModernHttp);
}

#[test]
fn calls_to_sse_servers_are_checked_against_the_current_definition() {
    check(ServerKind::Sse);
}
