//! Bars as SVG: one picture for each of the main ratios, a bar for each target.

use crate::{report::digits, store::Store};

/// A picture: its file, its title, the case, and what its values are divided by.
const PLOTS: [(&str, &str, &str); 5] = [
    (
        "round-trip.svg",
        "Round trip p50, x direct (less is better)",
        "round trip p50, µs",
    ),
    (
        "throughput.svg",
        "Calls a second with 64 in flight, x direct (more is better)",
        "calls a second, 64 in flight",
    ),
    (
        "result-1mib.svg",
        "Result of 1 MiB, x direct (less is better)",
        "result of 1024 KiB p50, µs",
    ),
    (
        "start.svg",
        "Start to first good call, x direct (less is better)",
        "start to first good call, ms",
    ),
    (
        "open-50.svg",
        "Open 50 servers, x a client alone (less is better)",
        "open 50 servers, ms",
    ),
];

const BAR: f64 = 22.0;
const STEP: f64 = 30.0;
const TOP: f64 = 48.0;
const LEFT: f64 = 150.0;
const WIDTH: f64 = 420.0;

/// The pictures that there are figures for: names and contents.
pub(crate) fn plots(store: &Store, targets: &[&str]) -> Vec<(&'static str, String)> {
    let mut plots = Vec::new();
    for (name, title, case) in PLOTS {
        let bars = targets.iter().filter_map(|&target| {
            let ratio = store.ratio((case, target), (case, "direct"))?;
            Some((target, ratio.median))
        });
        let bars: Vec<_> = bars.collect();
        if bars.len() > 1 {
            plots.push((name, picture(title, &bars)));
        }
    }
    plots
}

/// The length of a bar is the logarithm of its value where the largest is far from the smallest.
fn picture(title: &str, bars: &[(&str, f64)]) -> String {
    let values = || bars.iter().map(|(_, value)| *value);
    let most = values().fold(f64::MIN, f64::max);
    let least = values().fold(f64::MAX, f64::min);
    let is_wide = most / least > 20.0;
    let part = |value: f64| {
        if is_wide {
            (value / least * 1.5).ln() / (most / least * 1.5).ln()
        } else {
            value / most
        }
    };
    let mut y = TOP;
    let mut body = String::new();
    for (name, value) in bars {
        let ours = *name == "workbench" || *name == "native";
        let colour = if ours { "#1f77b4" } else { "#9aa5b1" };
        let width = (part(*value) * WIDTH).max(1.0);
        let middle = y + BAR / 2.0 + 4.0;
        body += &format!(
            "<text x=\"{:.0}\" y=\"{middle:.0}\" text-anchor=\"end\">{name}</text>\n\
             <rect x=\"{LEFT:.0}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"{BAR:.0}\" fill=\"{colour}\"/>\n\
             <text x=\"{:.1}\" y=\"{middle:.0}\">{}</text>\n",
            LEFT - 8.0,
            LEFT + width + 6.0,
            digits(*value),
        );
        y += STEP;
    }
    let scale = if is_wide { " – logarithmic" } else { "" };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"{:.0}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"15\">{title}{scale}</text>\n{body}</svg>\n",
        y + 10.0
    )
}
