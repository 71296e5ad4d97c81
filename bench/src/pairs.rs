//! The targets of the era pairs: every combination of a legacy or modern client and a legacy or modern server, with
//! the baselines that they are compared with. Names begin with the client's era.

use crate::{
    era::Era::{self, Legacy, Modern},
    target::{Extra, Kind, Target, Transport},
};

const fn stdio(name: &'static str, kind: Kind, eras: (Era, Era)) -> Target {
    Target::pair(name, kind, Transport::Stdio, eras)
}

const fn http(name: &'static str, kind: Kind, eras: (Era, Era)) -> Target {
    Target::pair(name, kind, Transport::Http, eras)
}

const LEGACY: (Era, Era) = (Legacy, Legacy);
const MODERN: (Era, Era) = (Modern, Modern);

pub const STDIO: [Target; 13] = [
    stdio("direct-legacy", Kind::Direct, LEGACY),
    stdio("direct-modern", Kind::Direct, MODERN),
    stdio("relay-legacy", Kind::Relay, LEGACY),
    stdio("relay-modern", Kind::Relay, MODERN),
    stdio("legacy-legacy", Kind::Workbench, LEGACY),
    stdio("legacy-modern", Kind::Workbench, (Legacy, Modern)),
    stdio("modern-legacy", Kind::Workbench, (Modern, Legacy)),
    stdio("modern-modern", Kind::Workbench, MODERN),
    stdio("native-legacy", Kind::Native, LEGACY),
    stdio("native-modern", Kind::Native, MODERN),
    stdio("legacy-progress", Kind::Workbench, LEGACY).with(Extra::ProgressToken),
    stdio("legacy-audit", Kind::Workbench, LEGACY).with(Extra::Audit),
    stdio("modern-audit", Kind::Workbench, MODERN).with(Extra::Audit),
];

/// The pairs with HTTP on both sides.
pub const HTTP: [Target; 8] = [
    http("http-direct-legacy", Kind::Direct, LEGACY),
    http("http-direct-modern", Kind::Direct, MODERN),
    http("http-relay-legacy", Kind::Relay, LEGACY),
    http("http-relay-modern", Kind::Relay, MODERN),
    http("http-legacy-legacy", Kind::Workbench, LEGACY),
    http("http-legacy-modern", Kind::Workbench, (Legacy, Modern)),
    http("http-modern-legacy", Kind::Workbench, (Modern, Legacy)),
    http("http-modern-modern", Kind::Workbench, MODERN),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_measured_with_its_baselines() {
        for targets in [&STDIO[..], &HTTP[..]] {
            let find = |name: &str, kind: Kind| {
                let mut targets = targets.iter();
                targets.any(|it| it.name() == name && it.kind() == kind)
            };
            for target in targets {
                let (direct, relay) = target.baselines();
                assert!(find(direct, Kind::Direct), "{}", target.name());
                assert!(find(relay, Kind::Relay), "{}", target.name());
            }
        }
    }
}
