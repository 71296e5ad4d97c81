use insta::assert_snapshot;
use pretty_assertions::assert_eq;

use super::*;

/// Returns the output of `write` on a page without colour.
fn rendered(write: impl FnOnce(&mut Page<'_, Vec<u8>>)) -> String {
    let mut out = Vec::new();
    write(&mut Page::new(&mut out, Style { colour: false }));
    String::from_utf8(out).unwrap()
}

fn step(received: Response<'_>) -> Step<'_> {
    Step {
        title: "Calculate",
        note: "A note for a person.",
        sent: r#"use_tool {"tool":{"toolbox":"desk","server":"calculator","tool":"evaluate"},"arguments":{"expression":"6 * 7"}}"#,
        received,
        took: Duration::from_micros(1_234),
    }
}

#[test]
fn a_step_shows_what_was_sent_and_what_came_back() {
    let text = rendered(|page| {
        page.step(&step(Response::Text(r#"{"value":42}"#))).unwrap();
        page.step(&step(Response::Error(
            "Error: Toolbox 'desk' is not open. Call open_toolbox first. And a tail.",
        )))
        .unwrap();
    });
    assert_snapshot!(text, @r#"

    1. Calculate                                                              1.2 ms
       A note for a person.

       sent    use_tool {"tool":{"toolbox":"desk","server":"calculator",
               "tool":"evaluate"},"arguments":{"expression":"6 * 7"}}
       answer  {"value":42}

    2. Calculate                                                              1.2 ms
       A note for a person.

       sent    use_tool {"tool":{"toolbox":"desk","server":"calculator",
               "tool":"evaluate"},"arguments":{"expression":"6 * 7"}}
       error   Error: Toolbox 'desk' is not open. Call open_toolbox first. And a
               tail.
    "#);
}

#[test]
fn quotes_and_tables_fit_the_page() {
    let rows = vec![
        vec![
            "calculator".to_owned(),
            "evaluate".to_owned(),
            "Calculate ".repeat(12),
        ],
        vec![
            "notes".to_owned(),
            "add".to_owned(),
            "Keep a note".to_owned(),
        ],
        vec!["notes".to_owned(), "list".to_owned(), String::new()],
    ];
    let quoted = "## Toolboxes\n\n- **desk** (3 servers): A clock, a calculator and a notes store that need nothing installed\n  - Use it";
    let text = rendered(|page| {
        page.step(&step(Response::Quote("hello:".to_owned(), quoted)))
            .unwrap();
        page.step(&step(Response::Table("3 tools:".to_owned(), rows)))
            .unwrap();
    });
    assert_snapshot!(text, @r#"

    1. Calculate                                                              1.2 ms
       A note for a person.

       sent    use_tool {"tool":{"toolbox":"desk","server":"calculator",
               "tool":"evaluate"},"arguments":{"expression":"6 * 7"}}
       answer  hello:
       | ## Toolboxes
       |
       | - **desk** (3 servers): A clock, a calculator and a notes store that need
       | nothing installed
       |   - Use it

    2. Calculate                                                              1.2 ms
       A note for a person.

       sent    use_tool {"tool":{"toolbox":"desk","server":"calculator",
               "tool":"evaluate"},"arguments":{"expression":"6 * 7"}}
       answer  3 tools:
               calculator  evaluate  Calculate Calculate Calculate Calculate…
               notes       add       Keep a note
               notes       list
    "#);
}

#[test]
fn the_figures_are_aligned_in_a_column() {
    let reading = ReadingCost {
        direct: 5812,
        tools: 8,
        at_start: 934,
        meta_tools: 2,
        opened: 17_101,
    };
    assert_snapshot!(rendered(|page| page.reading("desk", &reading).unwrap()), @r#"
    What a model has to read
       In characters, counted from the messages above. Without the workbench, a
       client shows its model all definitions of all servers from the start.

       without the workbench      5,812   8 definitions, servers' instructions
       with it, at the start        934   its instructions, 2 definitions
       with it, desk opened      17,101   the same and the answer to open_toolbox

       A closed toolbox costs one entry in the list, whatever it contains; an open
       one costs a little more than its servers alone would. So the workbench pays
       off with many servers, if a task needs few of them. These three are small.
    "#);
}

#[test]
fn the_end_shows_the_next_steps() {
    assert_snapshot!(rendered(|page| page.next_steps("{\n  \"mcpServers\": {}\n}").unwrap()), @r#"
    Next steps
       To use this demo with an agent, give your MCP client this entry:

          {
            "mcpServers": {}
          }

       mcp-workbench demo --print-config   prints the configuration behind it
       mcp-workbench import                imports the servers of your MCP clients
       mcp-workbench init                  creates a configuration file
    "#);
}

#[test]
fn a_failure_shows_the_log() {
    let log = ["one".to_owned(), "two".to_owned()];
    assert_snapshot!(rendered(|page| page.failure("no answer to `ping`", &log).unwrap()), @r#"

    The demo stopped
       no answer to `ping`
       The last log lines of the workbench:
       | one
       | two
    "#);
    assert!(!rendered(|page| page.failure("x", &[]).unwrap()).contains("logged"));
}

#[test]
fn long_answers_are_shortened() {
    let long = "word ".repeat(1000);
    let text = rendered(|page| page.step(&step(Response::Text(&long))).unwrap());
    assert!(text.contains("… (4,400 more characters)"), "{text}");
}

#[test]
fn colour_adds_nothing_but_colour() {
    let mut out = Vec::new();
    let mut page = Page::new(&mut out, Style { colour: true });
    page.opening().unwrap();
    page.step(&step(Response::Text("42"))).unwrap();
    let coloured = String::from_utf8(out).unwrap();
    assert!(coloured.contains("\x1b[1m1. Calculate\x1b[0m"));
    let mut plain = coloured;
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"] {
        plain = plain.replace(code, "");
    }
    let expected = rendered(|page| {
        page.opening().unwrap();
        page.step(&step(Response::Text("42"))).unwrap();
    });
    assert_eq!(plain, expected);
    assert!(
        expected.lines().all(|line| line.chars().count() <= COLUMNS),
        "{expected}"
    );
}
