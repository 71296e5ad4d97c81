use std::sync::Arc;

use indexmap::IndexMap;
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::config::{
    self, ListBounds, MetaTool, Permissions, PinMode, Server, ServerTimes, ToolFilters, ToolMode,
    Transport,
};

/// A toolbox by its name, its description and how many servers it has.
type Written = (String, String, usize);

fn server(name: &str) -> Arc<Server> {
    Arc::new(Server {
        name: name.into(),
        transport: Transport::Unset(Vec::new()),
        filters: ToolFilters::default(),
        permissions: Permissions::default(),
        times: ServerTimes {
            connect: std::time::Duration::ZERO,
            call: std::time::Duration::ZERO,
            max_call: std::time::Duration::ZERO,
            idle: None,
        },
        era: None,
        max_result_chars: None,
        result_select: indexmap::IndexMap::new(),
        list_bounds: ListBounds::default(),
        sanitize: false,
        pin: PinMode::Off,
        share: config::Share::Auto,
        learn_shapes: true,
        written: config::WrittenEntry::default(),
    })
}

fn config(toolboxes: &[Written]) -> Config {
    let toolboxes = toolboxes.iter().map(|(name, description, servers)| {
        let names = (0..*servers).map(|number| number.to_string());
        let toolbox = Toolbox {
            name: name.as_str().into(),
            description: description.clone(),
            servers: names
                .map(|name| (name.as_str().into(), server(&name)))
                .collect(),
            connect: crate::config::Connect::OnOpen,
            disabled: Vec::new(),
        };
        (name.as_str().into(), Arc::new(toolbox))
    });
    Config {
        file: "/home/me/workbench-config.json".into(),
        is_default_file: false,
        tool_mode: ToolMode::Proxy,
        tool_name_limit: 64,
        roots: None,
        attribute_questions: None,
        toolboxes: toolboxes.collect::<IndexMap<_, _>>(),
        auto_open: false,
        open_wait: std::time::Duration::from_secs(15),
        meta_tools: MetaTool::DEFAULT.to_vec(),
        open_detail: config::Detail::Full,
        clients: indexmap::IndexMap::new(),
        limits: crate::config::Limits::default(),
        auth: None,
        seal: None,
        replica_address: None,
        store: None,
        client: None,
        whole: None,
        select: crate::config::Selecting::Off,
        watch: true,
        shared: false,
        start_directory: "/".into(),
        cache: None,
        state: None,
        audit: None,
        lock: None,
        pin: crate::config::PinMode::Notice,
        purpose: crate::config::Purpose::Use,
    }
}

const END: &str = "To open a toolbox and see available tools:\n\
                   1. Call `open_toolbox` with the desired toolbox name\n\
                   2. Inspect the returned tools array for available operations";

/// Returns the contract's form of some toolboxes, with descriptions of at most `limit` characters.
fn form(toolboxes: &[Written], use_lines: bool, limit: usize, left_out: usize) -> String {
    let mut text = "## Available Toolboxes\n\n".to_owned();
    for (name, description, servers) in toolboxes {
        let plural = if *servers == 1 { "" } else { "s" };
        let mut description = description.clone();
        if description.chars().count() > limit {
            description = description.chars().take(limit - 1).chain(['…']).collect();
        }
        text += &format!("- **{name}** ({servers} server{plural}): {description}\n");
        if use_lines {
            text += "  - Use `open_toolbox` with toolbox name to access\n";
        }
        text += "\n";
    }
    if left_out > 0 {
        text += &format!("… and {left_out} more\n\n");
    }
    text + END
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Returns the first form that fits, in the order in which the contract shortens them.
fn first_that_fits(toolboxes: &[Written]) -> String {
    let fits = |text: &String| units(text) <= 2000;
    let whole = [true, false].map(|use_lines| form(toolboxes, use_lines, usize::MAX, 0));
    if let Some(text) = whole.into_iter().find(fits) {
        return text;
    }
    // One character less of all that are so long, as long as that helps.
    let least = form(toolboxes, false, 20, 0);
    if fits(&least) {
        let longest = toolboxes.iter().map(|it| it.1.chars().count()).max();
        let mut shorter = (20..longest.unwrap())
            .rev()
            .map(|limit| form(toolboxes, false, limit, 0));
        return shorter.find(fits).unwrap_or(least);
    }
    let counts = (0..toolboxes.len()).rev();
    let mut fewer =
        counts.map(|count| form(&toolboxes[..count], false, 20, toolboxes.len() - count));
    fewer.find(fits).expect("nothing but a count always fits")
}

fn check(toolboxes: &[Written]) {
    let text = instructions(&config(toolboxes));
    assert!(units(&text) <= 2000, "{} units", units(&text));
    assert_eq!(text, first_that_fits(toolboxes));
}

/// Returns a text of this many characters, some of which count twice.
fn text(length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let alphabet = prop::sample::select(vec!["abc", "aé", "😀", "ab😀"]);
    (alphabet, length)
        .prop_map(|(alphabet, length)| alphabet.chars().cycle().take(length).collect())
}

fn toolboxes() -> impl Strategy<Value = Vec<Written>> {
    let name = prop_oneof![9 => text(1..20), 1 => text(1..600)];
    let description = prop_oneof![text(1..40), text(1..400)];
    let count = prop_oneof![1_usize..8, 8_usize..90];
    let toolbox = (name, description, 0_usize..4);
    count.prop_flat_map(move |count| {
        prop::collection::vec(toolbox.clone(), count).prop_map(|toolboxes| {
            let numbered = toolboxes.into_iter().enumerate();
            let unique =
                numbered.map(|(at, (name, text, servers))| (format!("{name}{at}"), text, servers));
            unique.collect()
        })
    })
}

proptest! {
    #[test]
    fn instructions_of_any_configuration_fit_every_client(toolboxes in toolboxes()) {
        check(&toolboxes);
    }
}

#[test]
fn the_steps_of_shortening_are_applied_in_order() {
    let many = |count: usize, length: usize| -> Vec<Written> {
        let toolbox = |number| (format!("toolbox{number}"), "d".repeat(length), 1);
        (0..count).map(toolbox).collect()
    };
    for (count, length) in [
        (1, 10),
        (15, 30),
        (25, 30),
        (30, 60),
        (30, 200),
        (100, 5),
        (300, 300),
    ] {
        check(&many(count, length));
    }
}

/// A character outside the first plane counts as two, as it does where clients cut.
#[test]
fn characters_are_counted_as_clients_count_them() {
    let wide = vec![("t".to_owned(), "😀".repeat(1500), 1)];
    let text = instructions(&config(&wide));
    assert!((1999..=2000).contains(&units(&text)), "{}", units(&text));
    assert!(text.contains("😀…\n\n"));
}

#[test]
fn a_name_that_cannot_fit_is_only_counted() {
    let toolboxes = vec![
        ("n".repeat(3000), "d".to_owned(), 1),
        ("other".to_owned(), "d".to_owned(), 1),
    ];
    let text = instructions(&config(&toolboxes));
    assert_eq!(
        text,
        format!("## Available Toolboxes\n\n… and 2 more\n\n{END}")
    );
}

#[test]
fn a_description_is_on_one_line() {
    let toolboxes = vec![("t".to_owned(), "one\ntwo\r\nthree".to_owned(), 2)];
    let text = instructions(&config(&toolboxes));
    assert!(
        text.contains("- **t** (2 servers): one two  three\n"),
        "{text}"
    );
}

#[test]
fn a_cut_leaves_no_space_before_the_ellipsis() {
    let toolboxes = vec![("t".to_owned(), "word     ".repeat(400), 1)];
    let text = instructions(&config(&toolboxes));
    assert!(
        text.contains("word…\n")
            || text.contains("wor…\n")
            || text.contains("wo…\n")
            || text.contains("w…\n")
    );
    assert!(!text.contains(" …"));
}
