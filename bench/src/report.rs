//! The results, as tables in Markdown and as JSON.

use std::{fs, io, path::Path};

use serde::Serialize;

use crate::{
    cases::{Run, calls::TEXT_SIZES},
    goals::{self, Row, Verdict},
    plot,
    store::Record,
    target::Target,
};

/// The name of the file with all figures.
const FIGURES: &str = "figures.tsv";
/// A value with more leading zeros than this is written as 0.
const MOST_DECIMALS: usize = 6;

/// The machine, as far as it matters.
#[derive(Debug, Serialize)]
pub struct Machine {
    cores: usize,
    cpu: String,
    kernel: String,
}

impl Machine {
    pub fn this() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .unwrap_or("unknown")
            .trim_start_matches([' ', '\t', ':']);
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        // What follows the numbers is how somebody called a build.
        let numbers = release.split('-').next().unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: model.to_owned(),
            kernel: format!("Linux {}", numbers.trim()),
        }
    }
}

#[derive(Serialize)]
struct Results<'a> {
    machine: &'a Machine,
    command: &'a str,
    goals: &'a [Section],
    records: Vec<Record<'a>>,
}

#[derive(Serialize)]
struct Section {
    title: &'static str,
    /// True if each target is a row and each goal a column.
    is_by_target: bool,
    targets: Vec<&'static str>,
    rows: Vec<Row>,
}

/// Everything that a run leaves behind.
pub struct Report<'a> {
    pub machine: &'a Machine,
    /// How the run was started.
    pub command: &'a str,
    /// The targets, and what was found.
    pub run: &'a Run,
}

impl Report<'_> {
    pub fn text(&self) -> String {
        let machine = self.machine;
        let mut text = format!(
            "`{}`, {} cores of {}, {}, everything on one CPU.\n",
            self.command, machine.cores, machine.cpu, machine.kernel
        );
        let packages: Vec<_> = self.run.all_targets().filter_map(Target::package).collect();
        if !packages.is_empty() {
            text += &format!("Peers: {}.\n", packages.join(", "));
        }
        for section in self.sections() {
            text += &titled(section.title, &section.table());
        }
        text += &self.failures();
        text
    }

    /// Writes the tables, the JSON and the plots into a folder.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let results = Results {
            machine: self.machine,
            command: self.command,
            goals: &self.sections(),
            records: self.run.store.records(),
        };
        fs::write(
            folder.join("results.json"),
            serde_json::to_string_pretty(&results)?,
        )?;
        fs::write(folder.join("tables.md"), self.text())?;
        let figures = self.figures();
        fs::write(folder.join(FIGURES), &figures)?;
        draw(&figures, folder)
    }

    /// The tables of which something was measured.
    fn sections(&self) -> Vec<Section> {
        let Run {
            store,
            targets,
            http_targets,
            pairs,
            http_pairs,
            ..
        } = self.run;
        let texts = self.run.text_targets();
        let [small, medium, large] = TEXT_SIZES.map(|size| goals::text_rows(store, &texts, size));
        let sections = [
            Section::new("Era pairs", pairs, goals::pair_rows(store, pairs)).by_target(),
            Section::new(
                "Era pairs, HTTP on both sides",
                http_pairs,
                goals::http_rows(store, http_pairs),
            )
            .by_target(),
            Section::new("Results of 64 KiB by their text, x direct", &texts, small),
            Section::new("Results of 1 MiB by their text, x direct", &texts, medium),
            Section::new("Results of 10 MiB by their text, x direct", &texts, large),
            Section::new("Beside peers", targets, goals::rows(store, targets)),
            Section::new(
                "Beside peers, HTTP",
                http_targets,
                goals::http_rows(store, http_targets),
            ),
        ];
        let sections = sections.into_iter();
        sections.filter(|it| !it.rows.is_empty()).collect()
    }

    /// Returns the medians with the middle half of the rounds, for every case and target, as tab-separated values: the
    /// names of cases contain commas.
    fn figures(&self) -> String {
        let mut table = String::from("case\ttarget\tmedian\tlow\thigh\tx direct\n");
        let store = &self.run.store;
        for record in store.records() {
            let mut targets = self.run.all_targets();
            let target = targets.find(|target| target.name() == record.target);
            let ratio = target.and_then(|target| {
                let direct = target.baselines().0;
                store.ratio((record.case, record.target), (record.case, direct))
            });
            let figure = record.figure;
            table += &format!(
                "{}\t{}\t{}\t{}\t{}\t{}\n",
                record.case,
                record.target,
                digits(figure.median),
                digits(figure.low),
                digits(figure.high),
                ratio.map_or_else(String::new, |ratio| digits(ratio.median)),
            );
        }
        table
    }

    fn failures(&self) -> String {
        if self.run.store.failures().is_empty() {
            return String::new();
        }
        let mut list = String::new();
        for (target, reasons) in self.run.store.failures() {
            for reason in reasons {
                list += &format!("- {target}: {reason}\n");
            }
        }
        titled("Not measured", &list)
    }
}

fn titled(title: &str, text: &str) -> String {
    format!("\n### {title}\n\n{text}")
}

impl Section {
    /// A table of the rows of which something was measured.
    fn new(title: &'static str, targets: &[Target], mut rows: Vec<Row>) -> Self {
        rows.retain(|row| row.cells.iter().any(Option::is_some));
        Self {
            title,
            is_by_target: false,
            targets: targets.iter().map(Target::name).collect(),
            rows,
        }
    }

    /// Makes each target a row.
    fn by_target(self) -> Self {
        Self {
            is_by_target: true,
            ..self
        }
    }

    /// The table. A figure that misses what is acceptable is marked with two exclamation marks, one that only misses
    /// the goal with one.
    fn table(&self) -> String {
        let mut columns = vec![column("what", &self.targets, "at least", "goal")];
        for row in &self.rows {
            let cells: Vec<_> = row
                .cells
                .iter()
                .zip(&row.verdicts)
                .map(|(cell, verdict)| cell_text(*cell, *verdict))
                .collect();
            let cells: Vec<_> = cells.iter().map(String::as_str).collect();
            let (at_least, goal) = (limit(row.at_least), limit(row.goal));
            columns.push(column(row.what, &cells, &at_least, &goal));
        }
        let lines = if self.is_by_target {
            transposed(&columns)
        } else {
            columns
        };
        let mut table = String::new();
        for (number, line) in lines.iter().enumerate() {
            table += &format!("| {} |\n", line.join(" | "));
            if number == 0 {
                table += &format!("|{}\n", " --- |".repeat(line.len()));
            }
        }
        table
    }
}

fn column(what: &str, cells: &[&str], at_least: &str, goal: &str) -> Vec<String> {
    let texts = [&[what], cells, &[at_least, goal]].concat();
    texts.into_iter().map(str::to_owned).collect()
}

fn transposed(lines: &[Vec<String>]) -> Vec<Vec<String>> {
    let length = lines.first().map_or(0, Vec::len);
    let column = |at: usize| lines.iter().map(|line| line[at].clone()).collect();
    (0..length).map(column).collect()
}

fn limit(limit: f64) -> String {
    if limit.is_nan() {
        "–".to_owned()
    } else {
        limit.to_string()
    }
}

fn cell_text(cell: Option<f64>, verdict: Verdict) -> String {
    let Some(value) = cell else {
        return "–".to_owned();
    };
    let mark = match verdict {
        Verdict::Acceptable => " !",
        Verdict::Missed => " !!",
        Verdict::Goal | Verdict::None => "",
    };
    format!("{}{mark}", digits(value))
}

/// Puts the results of the last run, and the instructions if they were counted, into the page about them, and redraws the
/// charts. Without a last run it only redraws them, from the figures that were published.
pub fn publish(results: &Path, docs: &Path) -> io::Result<()> {
    let page = docs.join("benchmarks.md");
    let mut text = fs::read_to_string(&page)?;
    for name in ["tables", "instructions"] {
        let Ok(table) = fs::read_to_string(results.join(format!("{name}.md"))) else {
            continue;
        };
        text = with_part(&text, name, &table);
    }
    fs::write(page, text)?;
    let folder = docs.join("benchmarks");
    let last = results.join(FIGURES);
    if last.exists() {
        fs::copy(last, folder.join(FIGURES))?;
    }
    draw(&fs::read_to_string(folder.join(FIGURES))?, &folder)
}

/// Draws the charts of the figures into a folder.
fn draw(figures: &str, folder: &Path) -> io::Result<()> {
    for (name, svg) in plot::plots(figures) {
        fs::write(folder.join(name), svg)?;
    }
    Ok(())
}

/// The page with another text between the marks of a part.
fn with_part(page: &str, name: &str, part: &str) -> String {
    let (begin, end) = (
        format!("<!-- {name} -->"),
        format!("<!-- end of {name} -->"),
    );
    match (page.split_once(&begin), page.split_once(&end)) {
        (Some((before, _)), Some((_, after))) => format!("{before}{begin}\n{part}{end}{after}"),
        _ => page.to_owned(),
    }
}

/// Writes a value with three digits, or two below 0.1, where a fixed number of decimals would leave none.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        0.1.. => format!("{value:.2}"),
        small => {
            let mut decimals = 2;
            let mut scaled = small * 10.0;
            while scaled < 1.0 && decimals < MOST_DECIMALS {
                scaled *= 10.0;
                decimals += 1;
            }
            if scaled < 1.0 {
                return "0".to_owned();
            }
            format!("{value:.decimals$}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_page_is_replaced_between_its_marks() {
        let page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n";
        let expected = "a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n";
        assert_eq!(with_part(page, "x", "new\n"), expected);
        assert_eq!(with_part(page, "y", "new\n"), page);
    }

    #[test]
    fn a_table_has_its_targets_as_columns_or_as_rows() {
        let section = |is_by_target| Section {
            title: "",
            is_by_target,
            targets: vec!["relay", "workbench"],
            rows: vec![Row {
                what: "time",
                cells: vec![Some(1.0), Some(3.6)],
                at_least: 3.8,
                goal: 3.4,
                verdicts: vec![Verdict::None, Verdict::Acceptable],
            }],
        };
        let columns = "| what | relay | workbench | at least | goal |\n\
                       | --- | --- | --- | --- | --- |\n\
                       | time | 1.00 | 3.60 ! | 3.8 | 3.4 |\n";
        assert_eq!(section(false).table(), columns);
        let rows = "| what | time |\n| --- | --- |\n| relay | 1.00 |\n\
                    | workbench | 3.60 ! |\n| at least | 3.8 |\n| goal | 3.4 |\n";
        assert_eq!(section(true).table(), rows);
    }

    #[test]
    fn figures_have_three_digits() {
        let texts = [0.123_4, 1.234, 12.34, 123.4, 12_340.0].map(digits);
        assert_eq!(texts, ["0.12", "1.23", "12.3", "123", "12340"]);
    }

    #[test]
    fn small_figures_are_never_written_as_zero() {
        let texts = [0.031, 0.001_1, -0.05, 0.000_08, 0.0].map(digits);
        assert_eq!(texts, ["0.031", "0.0011", "-0.050", "0.000080", "0"]);
    }
}
