//! Bar charts as SVG, drawn from the table of figures, so that published figures can be redrawn without a run.

use crate::{peers::PEERS, report::digits};

/// The unit of the values of a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Microseconds,
    Milliseconds,
    PerSecond,
}

/// One chart: the values of a case for all targets over pipes.
#[derive(Debug, Clone, Copy)]
struct Chart {
    file: &'static str,
    title: &'static str,
    case: &'static str,
    unit: Unit,
}

const CHARTS: [Chart; 5] = [
    Chart {
        file: "round-trip.svg",
        title: "Round trip of a call, median: shorter is better",
        case: "round trip p50, µs",
        unit: Unit::Microseconds,
    },
    Chart {
        file: "throughput.svg",
        title: "Calls per second, 64 in flight: longer is better",
        case: "calls a second, 64 in flight",
        unit: Unit::PerSecond,
    },
    Chart {
        file: "result-1mib.svg",
        title: "Call with a result of 1 MiB, median: shorter is better",
        case: "result of 1024 KiB p50, µs",
        unit: Unit::Microseconds,
    },
    Chart {
        file: "start.svg",
        title: "Start to first successful call: shorter is better",
        case: "start to first good call, ms",
        unit: Unit::Milliseconds,
    },
    Chart {
        file: "open-50.svg",
        title: "Open 50 servers: shorter is better",
        case: "open 50 servers, ms",
        unit: Unit::Milliseconds,
    },
];

/// Colours for light and dark pages. A picture in a page sees the colour scheme of its reader.
const STYLE: &str = "<style>\n\
    text { font: 13px sans-serif; fill: #24292f; stroke: #ffffff; stroke-width: 4px; paint-order: stroke }\n\
    .title { font-size: 15px; font-weight: bold }\n\
    .small { font-size: 11px; fill: #57606a }\n\
    .page { fill: #ffffff }\n\
    .ours { fill: #0969da }\n\
    .other { fill: #8c959f }\n\
    .grid { stroke: #d0d7de }\n\
    @media (prefers-color-scheme: dark) {\n\
    text { fill: #e6edf3; stroke: #0d1117 }\n\
    .small { fill: #9198a1 }\n\
    .page { fill: #0d1117 }\n\
    .ours { fill: #4493f8 }\n\
    .other { fill: #6e7681 }\n\
    .grid { stroke: #3d444d }\n\
    }\n\
    </style>\n";

const BAR: f64 = 20.0;
const STEP: f64 = 28.0;
const TOP: f64 = 62.0;
const LEFT: f64 = 200.0;
const LENGTH: f64 = 350.0;
const WIDTH: f64 = 720.0;
/// Above this ratio of the largest to the smallest value, small bars could not be told apart on a linear scale.
const MOST_LINEAR: f64 = 20.0;

/// A bar: the value of a target.
#[derive(Debug)]
struct Bar {
    label: String,
    is_ours: bool,
    value: f64,
    /// The multiple of the value without a gateway, if it is not that value itself.
    ratio: Option<String>,
}

/// A scale from values to lengths, with the values of its marks.
struct Scale {
    name: &'static str,
    least: f64,
    most: f64,
    is_logarithmic: bool,
    marks: Vec<f64>,
}

/// Draws the charts that the figures are enough for: names and contents.
pub(crate) fn plots(figures: &str) -> Vec<(&'static str, String)> {
    let charts = CHARTS.into_iter().filter_map(|chart| {
        let bars = bars(chart, figures);
        (bars.len() > 1).then(|| (chart.file, drawn(chart, &bars)))
    });
    charts.collect()
}

/// Returns the bars of a chart, best first.
fn bars(chart: Chart, figures: &str) -> Vec<Bar> {
    let rows = figures.lines().map(|line| line.split('\t'));
    let mut bars: Vec<Bar> = rows.filter_map(|row| bar(chart.case, row)).collect();
    bars.sort_by(|one, other| one.value.total_cmp(&other.value));
    if chart.unit == Unit::PerSecond {
        bars.reverse();
    }
    bars
}

fn bar<'a>(case: &str, mut row: impl Iterator<Item = &'a str>) -> Option<Bar> {
    if row.next()? != case {
        return None;
    }
    let target = row.next()?;
    let value = row.next()?.parse().ok()?;
    let ratio = row.nth(2).filter(|_| target != "direct");
    Some(Bar {
        label: label(target)?,
        is_ours: matches!(target, "workbench" | "native"),
        value,
        ratio: ratio.map(str::to_owned),
    })
}

/// Returns how a chart calls a target, or nothing for targets with HTTP and era pairs, which have tables only.
fn label(target: &str) -> Option<String> {
    let name = match target {
        "direct" => "no gateway",
        "relay" => "bare relay",
        "workbench" => "MCP Workbench",
        "native" => "MCP Workbench, native",
        peer => {
            let mut peers = PEERS.iter().filter(|it| !it.has_http());
            let package = peers.find(|it| it.name == peer)?.package;
            // Without the registry.
            package.split_once(' ')?.1
        }
    };
    Some(name.to_owned())
}

impl Scale {
    fn of(bars: &[Bar]) -> Self {
        let values = || bars.iter().map(|bar| bar.value);
        let most = values().fold(f64::MIN, f64::max);
        let least = values().fold(f64::MAX, f64::min);
        if most / least > MOST_LINEAR {
            // The smallest bar must have a length, too.
            let begin = decade(least / 1.2);
            return Self {
                name: "logarithmic scale",
                least: begin,
                most,
                is_logarithmic: true,
                marks: multiples(begin, most, |mark| mark * 10.0),
            };
        }
        let step = round_step(most / 4.0);
        Self {
            name: "linear scale",
            least: 0.0,
            most,
            is_logarithmic: false,
            marks: multiples(0.0, most, |mark| mark + step),
        }
    }

    fn length(&self, value: f64) -> f64 {
        let part = if self.is_logarithmic {
            (value / self.least).ln() / (self.most / self.least).ln()
        } else {
            value / self.most
        };
        part * LENGTH
    }
}

/// Returns the power of ten at or below a value.
fn decade(value: f64) -> f64 {
    10_f64.powf(value.log10().floor())
}

/// Returns 1, 2 or 5 times a power of ten, at or above a value.
fn round_step(value: f64) -> f64 {
    let decade = decade(value);
    let mut steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|it| it * decade);
    steps.find(|it| *it >= value).unwrap_or(value)
}

fn multiples(begin: f64, most: f64, next: impl Fn(f64) -> f64) -> Vec<f64> {
    std::iter::successors(Some(begin), |mark| Some(next(*mark)))
        .take_while(|mark| *mark <= most)
        .collect()
}

fn drawn(chart: Chart, bars: &[Bar]) -> String {
    let scale = Scale::of(bars);
    let bottom = bars.iter().fold(TOP, |y, _| y + STEP);
    let mut body = String::new();
    for mark in &scale.marks {
        let x = LEFT + scale.length(*mark);
        body += &format!(
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.0}\" y2=\"{bottom:.0}\"/>\n\
             <text class=\"small\" x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>\n",
            TOP - 6.0,
            bottom + 14.0,
            mark_text(chart.unit, *mark),
        );
    }
    let mut y = TOP;
    for bar in bars {
        body += &row(chart.unit, bar, scale.length(bar.value), y);
        y += STEP;
    }
    let height = bottom + 26.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\">\n\
         <title>{title}</title>\n{STYLE}\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"16\" y=\"24\">{title}</text>\n\
         <text class=\"small\" x=\"16\" y=\"42\">{}; × is relative to no gateway</text>\n{body}</svg>\n",
        scale.name,
        title = chart.title,
    )
}

fn row(unit: Unit, bar: &Bar, length: f64, y: f64) -> String {
    let class = if bar.is_ours { "ours" } else { "other" };
    let ratio = bar.ratio.as_ref();
    let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({ratio}×)"));
    let middle = y + BAR / 2.0 + 4.0;
    format!(
        "<text x=\"{:.0}\" y=\"{middle:.0}\" text-anchor=\"end\">{}</text>\n\
         <rect class=\"{class}\" x=\"{LEFT:.0}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"{BAR:.0}\"/>\n\
         <text x=\"{:.1}\" y=\"{middle:.0}\">{}{ratio}</text>\n",
        LEFT - 8.0,
        bar.label,
        LEFT + length + 6.0,
        quantity(unit, bar.value),
    )
}

/// Writes a value in the unit in which it has few digits.
fn quantity(unit: Unit, value: f64) -> String {
    match unit {
        Unit::PerSecond => format!("{}/s", grouped(&format!("{value:.0}"))),
        Unit::Microseconds if value >= 1_000.0 => quantity(Unit::Milliseconds, value / 1_000.0),
        Unit::Microseconds => format!("{} µs", digits(value)),
        Unit::Milliseconds if value >= 1_000.0 => format!("{} s", digits(value / 1_000.0)),
        Unit::Milliseconds => format!("{} ms", digits(value)),
    }
}

/// Writes a mark of the axis, which is a round value.
fn mark_text(unit: Unit, value: f64) -> String {
    match unit {
        _ if value <= 0.0 => "0".to_owned(),
        Unit::PerSecond => format!("{}/s", grouped(&value.to_string())),
        Unit::Microseconds if value >= 1_000.0 => mark_text(Unit::Milliseconds, value / 1_000.0),
        Unit::Microseconds => format!("{value} µs"),
        Unit::Milliseconds if value >= 1_000.0 => format!("{} s", value / 1_000.0),
        Unit::Milliseconds => format!("{value} ms"),
    }
}

/// Puts a comma in front of every three digits of a whole number.
fn grouped(digits: &str) -> String {
    let length = digits.len();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (length - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: &str = "case\ttarget\tmedian\tlow\thigh\tx direct\n\
        round trip p50, µs\tfastmcp\t1514\t1336\t2340\t271\n\
        round trip p50, µs\tworkbench\t18.3\t18.2\t23.7\t3.34\n\
        round trip p50, µs\tworkbench-http\t46.7\t45.9\t55.8\t2.67\n\
        round trip p50, µs\tdirect\t5.49\t5.47\t5.90\t1.00\n\
        open 50 servers, ms\tworkbench\t68.9\t64.8\t71.6\t1.32\n";

    #[test]
    fn a_chart_has_sorted_bars_with_names_values_and_an_axis() {
        let plots = plots(FIGURES);
        // One bar is no chart.
        let [(file, svg)] = plots.as_slice() else {
            panic!("{plots:?}");
        };
        assert_eq!(*file, "round-trip.svg");
        let mut rest = svg.as_str();
        for text in [
            "prefers-color-scheme: dark",
            "logarithmic scale",
            ">1 µs<",
            ">10 µs<",
            ">1 ms<",
            ">no gateway<",
            ">5.49 µs<",
            ">MCP Workbench<",
            ">18.3 µs (3.34×)<",
            ">fastmcp 4.1.2<",
            ">1.51 ms (271×)<",
        ] {
            let at = rest.find(text);
            let at = at.unwrap_or_else(|| panic!("no {text} in {rest}"));
            rest = &rest[at..];
        }
        assert!(!svg.contains("46.7"), "{svg}");
    }

    #[test]
    fn values_that_are_near_each_other_have_a_linear_scale() {
        let bar = |value| Bar {
            label: String::new(),
            is_ours: false,
            value,
            ratio: None,
        };
        let scale = Scale::of(&[bar(574.0), bar(10_723.0)]);
        assert!(!scale.is_logarithmic);
        assert_eq!(scale.marks, [0.0, 5_000.0, 10_000.0]);
        assert!((scale.length(10_723.0) - LENGTH).abs() < 0.001);
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let texts = ["7", "538", "12499", "644190", "1000000"].map(grouped);
        assert_eq!(texts, ["7", "538", "12,499", "644,190", "1,000,000"]);
    }
}
