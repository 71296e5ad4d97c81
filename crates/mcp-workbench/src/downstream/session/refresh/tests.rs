use bytes::Bytes;
use tokio::sync::oneshot;

use super::*;
use crate::{
    config::{ListBounds, Permissions, ToolFilters},
    downstream::{
        error::ConnectError,
        listing::{HeaderMarks, ListRules, ToolList},
        server::Phase,
    },
};

const MOMENT: Duration = Duration::from_millis(1);

fn page(tools: &[&str], next: Option<&str>) -> Answer {
    let tools = tools
        .iter()
        .map(|name| format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#));
    let tools = tools.collect::<Vec<_>>().join(",");
    let next = next.map(|cursor| format!(r#","nextCursor":"{cursor}""#));
    let page = format!(r#"{{"tools":[{tools}]{}}}"#, next.unwrap_or_default());
    Answer::Result(RawJson::parse(&Bytes::from(page)).unwrap())
}

static NO_PERMISSIONS: Permissions = Permissions {
    allow: None,
    ask: Vec::new(),
    deny: Vec::new(),
    code: None,
    client: None,
};

fn rules(filters: &ToolFilters) -> ListReader<'static> {
    let filters = filters.clone();
    ListReader {
        era: Era::Legacy,
        permissions: &NO_PERMISSIONS,
        make_list: Box::new(move |told| {
            let rules = ListRules {
                filters: &filters,
                permissions: &NO_PERMISSIONS,
                marks: HeaderMarks::Ignored,
                pins: None,
                shapes: None,
            };
            ToolList::of(told, &rules)
        }),
        keep: &|_| {},
    }
}

fn status() -> watch::Sender<Status> {
    let mut tools = ToolList::default();
    tools.introduction.instructions = Some("hello".to_owned());
    let status = Status {
        phase: Phase::Up,
        tools: Some(Arc::new(tools)),
        stale: true,
        from_cache: false,
    };
    watch::channel(status).0
}

fn names(tools: &ToolList) -> Vec<&str> {
    tools.tools().iter().map(|it| it.name.as_str()).collect()
}

fn known(status: &watch::Sender<Status>) -> Arc<ToolList> {
    status.borrow().tools.clone().unwrap()
}

fn begun(refresh: &mut Refresh) -> Instant {
    refresh.announce();
    let now = Instant::now() + PAUSE;
    let params = refresh
        .begin_if_due(now, ListBounds::default())
        .expect("it is due");
    assert_eq!(params.as_str(), "{}");
    refresh.asked(PAGE);
    now
}

/// The id of every request for a page.
const PAGE: u64 = 7;

#[test]
fn the_first_change_is_read_at_once() {
    let mut refresh = Refresh::default();
    assert!(!refresh.is_on() && refresh.due().is_none());
    assert!(
        refresh
            .begin_if_due(Instant::now() + PAUSE, ListBounds::default())
            .is_none()
    );
    refresh.announce();
    assert!(refresh.is_on());
    let due = refresh.due().unwrap();
    assert!(due <= Instant::now());
    assert!(
        refresh
            .begin_if_due(due - MOMENT, ListBounds::default())
            .is_none()
    );
    assert!(refresh.begin_if_due(due, ListBounds::default()).is_some());
    assert!(refresh.is_on());
    assert_eq!(refresh.due(), Some(due + LISTING_TIMEOUT));
}

#[test]
fn later_changes_are_read_at_most_once_per_second() {
    let mut refresh = Refresh::default();
    let status = status();
    let began = begun(&mut refresh);
    for _ in 0..100 {
        refresh.announce();
    }
    assert_eq!(
        refresh.due(),
        Some(began + LISTING_TIMEOUT),
        "a reading is under way"
    );
    assert!(
        refresh
            .begin_if_due(began + PAUSE * 2, ListBounds::default())
            .is_none()
    );
    let next = refresh.take_page(
        PAGE,
        &page(&["a"], None),
        rules(&ToolFilters::default()),
        &status,
    );
    assert_eq!(next, PageOutcome::ChangedAgain);
    assert!(status.borrow().stale, "it has changed again meanwhile");
    assert_eq!(refresh.due(), Some(began + PAUSE));
    assert!(
        refresh
            .begin_if_due(began + PAUSE, ListBounds::default())
            .is_some()
    );
    refresh.asked(PAGE);
    refresh.take_page(
        PAGE,
        &page(&["a"], None),
        rules(&ToolFilters::default()),
        &status,
    );
    assert!(!status.borrow().stale && !refresh.is_on());
}

#[test]
fn all_pages_are_requested_and_the_list_is_published() {
    let mut refresh = Refresh::default();
    let status = status();
    begun(&mut refresh);
    let filters = ToolFilters::new(Some(vec!["!c".to_owned()]), None, Vec::new());
    let next = refresh.take_page(PAGE, &page(&["a"], Some("2")), rules(&filters), &status);
    let PageOutcome::Next(params) = next else {
        panic!("{next:?}");
    };
    assert_eq!(params.as_str(), r#"{"cursor":"2"}"#);
    refresh.asked(PAGE);
    assert_eq!(names(&known(&status)), Vec::<&str>::new());
    assert_eq!(
        refresh.take_page(PAGE, &page(&["b", "c"], None), rules(&filters), &status),
        PageOutcome::Listed
    );
    let list = known(&status);
    assert_eq!(names(&list), ["a", "b"]);
    assert_eq!(list.introduction.instructions.as_deref(), Some("hello"));
    assert!(!status.borrow().stale);
}

#[test]
fn an_equal_list_is_not_replaced() {
    let mut refresh = Refresh::default();
    let status = status();
    let mut lists = Vec::new();
    for tools in [&["a"][..], &["a"], &["a", "b"]] {
        begun(&mut refresh);
        refresh.began = None;
        refresh.take_page(
            PAGE,
            &page(tools, None),
            rules(&ToolFilters::default()),
            &status,
        );
        lists.push(known(&status));
    }
    assert!(Arc::ptr_eq(&lists[0], &lists[1]));
    assert!(!Arc::ptr_eq(&lists[1], &lists[2]));
}

#[test]
fn an_unreadable_list_leaves_the_last_one() {
    let error = || Answer::Error(RawJson::parse(&Bytes::from_static(b"{}")).unwrap());
    let no_page = || Answer::Result(RawJson::parse(&Bytes::from_static(b"{}")).unwrap());
    for answer in [error(), no_page(), Answer::Invalid] {
        let mut refresh = Refresh::default();
        let status = status();
        let before = known(&status);
        begun(&mut refresh);
        assert_eq!(
            refresh.take_page(PAGE, &answer, rules(&ToolFilters::default()), &status),
            PageOutcome::Unreadable
        );
        assert!(Arc::ptr_eq(&before, &known(&status)));
        assert!(
            status.borrow().stale && refresh.is_on(),
            "no call is sent by it"
        );
        assert_eq!(refresh.due(), None, "nobody needs it now");
        let now = Instant::now();
        refresh.list_now(now);
        assert_eq!(refresh.due(), Some(now), "a call waits for it");
    }
}

#[test]
fn waiting_callers_get_the_current_list() {
    let mut refresh = Refresh::default();
    let status = status();
    begun(&mut refresh);
    let (reply, mut answer) = oneshot::channel();
    refresh.wait(reply, Instant::now());
    refresh.take_page(
        PAGE,
        &page(&["a"], Some("2")),
        rules(&ToolFilters::default()),
        &status,
    );
    assert!(answer.try_recv().is_err(), "the list is not whole yet");
    refresh.asked(PAGE);
    refresh.take_page(
        PAGE,
        &page(&["b"], None),
        rules(&ToolFilters::default()),
        &status,
    );
    let list: Result<Arc<ToolList>, Arc<ConnectError>> = answer.try_recv().unwrap();
    assert_eq!(names(&list.unwrap()), ["a", "b"]);
    assert!(refresh.into_waiting().is_empty());
}

#[test]
fn remaining_waiters_are_returned() {
    let mut refresh = Refresh::default();
    begun(&mut refresh);
    refresh.wait(oneshot::channel().0, Instant::now());
    assert_eq!(refresh.into_waiting().len(), 1);
}

#[test]
fn unrequested_pages_are_ignored() {
    let mut refresh = Refresh::default();
    let status = status();
    refresh.take_page(
        PAGE,
        &page(&["a"], None),
        rules(&ToolFilters::default()),
        &status,
    );
    assert_eq!(names(&known(&status)), Vec::<&str>::new());
    assert!(status.borrow().stale);
}

#[test]
fn a_slow_reading_times_out() {
    let mut refresh = Refresh::default();
    let status = status();
    refresh.give_up_if_due(Instant::now() + LISTING_TIMEOUT * 2, &status);
    let began = begun(&mut refresh);
    let (reply, mut answer) = oneshot::channel();
    refresh.wait(reply, Instant::now());
    refresh.give_up_if_due(began + LISTING_TIMEOUT - MOMENT, &status);
    assert!(refresh.is_on() && status.borrow().stale);
    let given_up = refresh.give_up_if_due(began + LISTING_TIMEOUT, &status);
    assert_eq!(given_up, Some((Some(PAGE), PageOutcome::Unreadable)));
    assert!(refresh.is_on() && status.borrow().stale);
    assert!(Arc::ptr_eq(
        &answer.try_recv().unwrap().unwrap(),
        &known(&status)
    ));
    refresh.take_page(
        PAGE,
        &page(&["a"], None),
        rules(&ToolFilters::default()),
        &status,
    );
    assert_eq!(
        names(&known(&status)),
        Vec::<&str>::new(),
        "it came too late"
    );
}

#[test]
fn endless_announcements_do_not_block_calls() {
    let mut refresh = Refresh::default();
    let status = status();
    let mut outcomes = Vec::new();
    for _ in 0..MAX_UNSETTLED {
        begun(&mut refresh);
        refresh.announce();
        let filters = ToolFilters::default();
        let page = page(&["a"], None);
        outcomes.push(refresh.take_page(PAGE, &page, rules(&filters), &status));
        refresh.began = None;
        refresh.due = None;
    }
    assert_eq!(
        outcomes,
        [
            PageOutcome::ChangedAgain,
            PageOutcome::ChangedAgain,
            PageOutcome::Listed
        ]
    );
}

#[test]
fn pages_of_a_lost_session_do_not_count_for_the_new_one() {
    let mut refresh = Refresh::default();
    let status = status();
    begun(&mut refresh);
    assert_eq!(refresh.lose(), Some(PAGE));
    let filters = ToolFilters::default();
    let old = refresh.take_page(PAGE, &page(&["old"], None), rules(&filters), &status);
    assert_eq!(old, PageOutcome::Ignored);
    refresh.list_now(Instant::now());
    assert_eq!(refresh.due(), None, "there is nobody to read from");
    assert_eq!(refresh.require(Introduction::default()), None);
    begun(&mut refresh);
    refresh.asked(PAGE + 1);
    let late = refresh.take_page(PAGE, &page(&["old"], None), rules(&filters), &status);
    assert_eq!(late, PageOutcome::Ignored);
    let unreadable = refresh.take_page(PAGE + 1, &Answer::Invalid, rules(&filters), &status);
    assert_eq!(unreadable, PageOutcome::Lost);
}

/// Returns a page that is too large to be checked on the event loop.
fn large_page(tools: &[&str], next: Option<&str>) -> Answer {
    let Answer::Result(page) = page(tools, next) else {
        unreachable!("a page is a result");
    };
    let padding = RawJson::of(&"x".repeat(1024 * 1024));
    Answer::Result(page.with_member("_meta", &padding))
}

async fn checked(refresh: &mut Refresh, status: &watch::Sender<Status>) -> PageOutcome {
    refresh.check_ended().await;
    refresh.take_checked(&NO_PERMISSIONS, &|_| {}, status)
}

#[tokio::test]
async fn large_pages_are_checked_off_the_event_loop() {
    let mut refresh = Refresh::default();
    let status = status();
    let filters = ToolFilters::default();
    let began = begun(&mut refresh);
    let first = large_page(&["a"], Some("2"));
    let page = refresh.take_page(PAGE, &first, rules(&filters), &status);
    assert_eq!(page, PageOutcome::InWork);
    assert!(refresh.is_in_work());
    // It is a reading that is under way.
    assert!(
        refresh
            .begin_if_due(began + PAUSE * 2, ListBounds::default())
            .is_none()
    );
    assert_eq!(refresh.due(), Some(began + LISTING_TIMEOUT));
    let next = checked(&mut refresh, &status).await;
    assert_eq!(
        next,
        PageOutcome::Next(RawJson::parse(&Bytes::from(r#"{"cursor":"2"}"#)).unwrap())
    );
    refresh.asked(PAGE);
    let last = large_page(&["b"], None);
    assert_eq!(
        refresh.take_page(PAGE, &last, rules(&filters), &status),
        PageOutcome::InWork
    );
    assert_eq!(names(&known(&status)), Vec::<&str>::new());
    assert_eq!(checked(&mut refresh, &status).await, PageOutcome::Listed);
    assert_eq!(names(&known(&status)), ["a", "b"]);
    assert!(!refresh.is_in_work() && !refresh.is_on());
}

#[tokio::test]
async fn a_check_with_outdated_rules_is_discarded() {
    let mut refresh = Refresh::default();
    let status = status();
    let began = begun(&mut refresh);
    let last = large_page(&["a"], None);
    refresh.take_page(PAGE, &last, rules(&ToolFilters::default()), &status);
    refresh.discard_work(began);
    assert!(!refresh.is_in_work() && refresh.is_on());
    assert!(refresh.begin_if_due(began, ListBounds::default()).is_some());
    refresh.asked(PAGE);
    let filters = ToolFilters::new(Some(vec!["!a".to_owned()]), None, Vec::new());
    refresh.take_page(PAGE, &last, rules(&filters), &status);
    assert_eq!(checked(&mut refresh, &status).await, PageOutcome::Listed);
    assert_eq!(names(&known(&status)), Vec::<&str>::new());
}

#[tokio::test]
async fn a_slow_check_times_out() {
    let mut refresh = Refresh::default();
    let status = status();
    let began = begun(&mut refresh);
    let last = large_page(&["a"], None);
    refresh.take_page(PAGE, &last, rules(&ToolFilters::default()), &status);
    let given_up = refresh.give_up_if_due(began + LISTING_TIMEOUT, &status);
    assert_eq!(given_up, Some((None, PageOutcome::Unreadable)));
    assert!(!refresh.is_in_work());
}
