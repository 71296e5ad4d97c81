//! Tool filters of a server: `toolFilters`, and the `includeTools`, `excludeTools` and `disabledTools` of other
//! clients. A tool is offered if all of them permit it.

use super::glob::Glob;

/// The filters of one server. The default permits everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilters {
    /// `toolFilters`; `None` if the entry has none.
    patterns: Option<Vec<FilterEntry>>,
    /// `includeTools`, exact names; `None` if the entry has none.
    included: Option<Vec<String>>,
    /// `excludeTools` and `disabledTools`, exact names.
    excluded: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FilterEntry {
    written: String,
    effect: Effect,
    glob: Glob,
}

/// The effect of an entry on the tools that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Offer,
    TakeAway,
}

impl ToolFilters {
    /// Creates filters from the lists of an entry; `None` means that the entry does not have the list.
    pub fn new(
        patterns: Option<Vec<String>>,
        included: Option<Vec<String>>,
        excluded: Vec<String>,
    ) -> Self {
        Self {
            patterns: patterns.map(|entries| entries.into_iter().map(FilterEntry::new).collect()),
            included,
            excluded,
        }
    }

    /// Returns whether the tool is offered.
    pub fn allows(&self, tool: &str) -> bool {
        self.patterns_allow(tool)
            && self
                .included
                .as_ref()
                .is_none_or(|names| names.iter().any(|name| name == tool))
            && !self.excluded.iter().any(|name| name == tool)
    }

    /// Returns the entries, as written, that match none of `tools` (all tools of the server). An entry of only `*` is
    /// never returned, because it is not a mistake on a server without tools.
    pub fn unmatched<'a, 'b>(&'a self, tools: impl Iterator<Item = &'b str>) -> Vec<&'a str> {
        let tools: Vec<&str> = tools.collect();
        let patterns = self.patterns.iter().flatten();
        let names = self.included.iter().flatten().chain(&self.excluded);
        patterns
            .filter(|entry| !entry.glob.is_everything())
            .filter(|entry| !tools.iter().any(|tool| entry.glob.matches(tool)))
            .map(|entry| entry.written.as_str())
            .chain(
                names
                    .filter(|name| !tools.contains(&name.as_str()))
                    .map(String::as_str),
            )
            .collect()
    }

    fn patterns_allow(&self, tool: &str) -> bool {
        let Some(entries) = &self.patterns else {
            return true;
        };
        let matches = |effect: Effect| {
            entries
                .iter()
                .any(|entry| entry.effect == effect && entry.glob.matches(tool))
        };
        // A list of only `!` entries means everything but these. An empty list means nothing.
        let starts_from_all =
            !entries.is_empty() && entries.iter().all(|entry| entry.effect == Effect::TakeAway);
        (starts_from_all || matches(Effect::Offer)) && !matches(Effect::TakeAway)
    }
}

impl FilterEntry {
    fn new(written: String) -> Self {
        let (effect, pattern) = match written.strip_prefix('!') {
            Some(pattern) => (Effect::TakeAway, pattern),
            None => (Effect::Offer, written.as_str()),
        };
        Self {
            glob: Glob::new(pattern),
            effect,
            written,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOOLS: [&str; 6] = [
        "read_file",
        "write_file",
        "delete_all",
        "!bang",
        "a*b",
        "Read",
    ];

    fn patterns(entries: &[&str]) -> ToolFilters {
        ToolFilters::new(Some(owned(entries)), None, Vec::new())
    }

    fn owned(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|&entry| entry.into()).collect()
    }

    fn offered(filters: &ToolFilters) -> Vec<&'static str> {
        TOOLS
            .into_iter()
            .filter(|tool| filters.allows(tool))
            .collect()
    }

    #[test]
    fn absent_means_all() {
        assert_eq!(offered(&ToolFilters::default()), TOOLS);
    }

    #[test]
    fn tool_filters_choose_tools() {
        let cases: [(&[&str], &[&str]); 12] = [
            (&["*"], &TOOLS),
            (&[], &[]),
            (&["read_file"], &["read_file"]),
            (&["read_*"], &["read_file"]),
            (&["*_file"], &["read_file", "write_file"]),
            (
                &["*", "!delete_*"],
                &["read_file", "write_file", "!bang", "a*b", "Read"],
            ),
            (
                &["!delete_*", "*"],
                &["read_file", "write_file", "!bang", "a*b", "Read"],
            ),
            (&["!*_file", "!Read"], &["delete_all", "!bang", "a*b"]),
            (&[r"\!bang"], &["!bang"]),
            (&["*", "!!bang", "!*_*"], &["a*b", "Read"]),
            (&[r"a\*b"], &["a*b"]),
            (&["read"], &[]),
        ];
        for (entries, expected) in cases {
            assert_eq!(offered(&patterns(entries)), expected, "{entries:?}");
        }
    }

    #[test]
    fn other_clients_lists_are_exact_names_and_all_must_agree() {
        let all = || Some(owned(&["*"]));
        let cases = [
            (
                ToolFilters::new(all(), Some(owned(&["Read", "read_*"])), Vec::new()),
                vec!["Read"],
            ),
            (ToolFilters::new(None, Some(Vec::new()), Vec::new()), vec![]),
            (
                ToolFilters::new(None, None, owned(&["read_file", "delete_*"])),
                vec!["write_file", "delete_all", "!bang", "a*b", "Read"],
            ),
            (
                ToolFilters::new(
                    Some(owned(&["*_file"])),
                    Some(owned(&["read_file", "Read"])),
                    owned(&["Read"]),
                ),
                vec!["read_file"],
            ),
        ];
        for (filters, expected) in cases {
            assert_eq!(offered(&filters), expected, "{filters:?}");
        }
    }

    #[test]
    fn entries_that_match_nothing_are_named_as_written() {
        let filters = ToolFilters::new(
            Some(owned(&["*", "read_*", "!gone_*", "misspelt", r"\!bang"])),
            Some(owned(&["Read", "red"])),
            owned(&["wipe"]),
        );
        assert_eq!(
            filters.unmatched(TOOLS.into_iter()),
            ["!gone_*", "misspelt", "red", "wipe"]
        );
    }

    #[test]
    fn a_server_without_tools_does_not_make_a_star_wrong() {
        assert_eq!(patterns(&["*", "x"]).unmatched(std::iter::empty()), ["x"]);
    }

    proptest! {
        #[test]
        fn the_order_of_entries_does_not_matter(
            entries in prop::collection::vec(r"!?[ab*]{0,4}", 0..5),
            tool in "[ab]{0,5}",
        ) {
            let mut reversed = entries.clone();
            reversed.reverse();
            let forwards = ToolFilters::new(Some(entries), None, Vec::new());
            let backwards = ToolFilters::new(Some(reversed), None, Vec::new());
            prop_assert_eq!(forwards.allows(&tool), backwards.allows(&tool));
        }
    }
}
