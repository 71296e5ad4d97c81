//! The report of `doctor` for a terminal and as JSON.

use serde::Serialize;

use super::finding::{Finding, Level};
use crate::{
    cli::{
        host::Sharing,
        probe::ProbeResult,
        terminal::{Ink, OutputStyle, count},
    },
    visible::visible,
};

pub(super) struct DoctorReport {
    pub(super) file: String,
    pub(super) configuration: Vec<Finding>,
    /// Findings by toolbox, in the order of the file.
    pub(super) toolboxes: Vec<ToolboxReport>,
    /// The state of the host, if the configuration is shared.
    pub(super) sharing: Option<Sharing>,
}

pub(super) struct ToolboxReport {
    pub(super) name: String,
    pub(super) findings: Vec<Finding>,
    pub(super) servers: Vec<ServerReport>,
}

pub(super) struct ServerReport {
    pub(super) probed: ProbeResult,
    pub(super) findings: Vec<Finding>,
}

impl DoctorReport {
    fn findings(&self) -> impl Iterator<Item = &Finding> {
        let of_toolboxes = self.toolboxes.iter().flat_map(|toolbox| {
            let of_servers = toolbox.servers.iter().flat_map(|server| &server.findings);
            toolbox.findings.iter().chain(of_servers)
        });
        self.configuration.iter().chain(of_toolboxes)
    }

    fn count(&self, level: Level) -> usize {
        self.findings().filter(|it| it.level() == level).count()
    }

    /// Returns true if all servers were examined and nothing is wrong.
    pub(super) fn is_healthy(&self) -> bool {
        self.count(Level::Wrong) == 0 && !self.is_interrupted()
    }

    /// Returns true if some servers were not examined.
    pub(super) fn is_interrupted(&self) -> bool {
        self.unfinished() > 0
    }

    fn unfinished(&self) -> usize {
        self.servers()
            .filter(|it| it.probed.is_unfinished())
            .count()
    }

    fn servers(&self) -> impl Iterator<Item = &ServerReport> {
        self.toolboxes.iter().flat_map(|it| &it.servers)
    }

    pub(super) fn render(&self, style: OutputStyle) -> String {
        let mut text = format!("{}\n", visible(&self.file));
        push_findings(&mut text, &self.configuration, style, "  ");
        for toolbox in &self.toolboxes {
            let name = style.paint(Ink::Strong, &visible(&toolbox.name));
            text.push_str(&format!("\n{name}\n"));
            for server in &toolbox.servers {
                server.render(&mut text, style);
            }
            if toolbox.servers.is_empty() {
                text.push_str("  no servers\n");
            }
            push_findings(&mut text, &toolbox.findings, style, "  ");
        }
        text.push_str(&format!("\n{}\n", self.summary(style)));
        if let Some(sharing) = &self.sharing {
            text.push_str(&sharing.text());
        }
        text
    }

    fn summary(&self, style: OutputStyle) -> String {
        let servers = self.servers().count();
        let up = self.servers().filter(|it| it.probed.tools.is_ok()).count();
        let (wrong, remarks) = (self.count(Level::Wrong), self.count(Level::Remark));
        let (ink, verdict) = match (wrong, self.is_interrupted()) {
            (0, false) => (Ink::Good, "nothing is wrong".to_owned()),
            (0, true) => (Ink::Notable, "nothing is wrong so far".to_owned()),
            _ => (Ink::Bad, count(wrong, "problem")),
        };
        let mut text = format!("{}, {up} up", count(servers, "server"));
        if self.is_interrupted() {
            text.push_str(&format!(", {} not examined", self.unfinished()));
        }
        text.push_str(&format!("; {}", style.paint(ink, &verdict)));
        if remarks > 0 {
            text.push_str(&format!(", {}", count(remarks, "remark")));
        }
        text
    }

    pub(super) fn document(&self) -> ReportDocument<'_> {
        ReportDocument {
            file: &self.file,
            healthy: self.is_healthy(),
            wrong: self.count(Level::Wrong),
            remarks: self.count(Level::Remark),
            findings: documents(&self.configuration),
            toolboxes: self.toolboxes.iter().map(ToolboxReport::document).collect(),
            sharing: self.sharing.as_ref(),
        }
    }
}

impl ToolboxReport {
    fn document(&self) -> ToolboxDocument<'_> {
        ToolboxDocument {
            name: &self.name,
            findings: documents(&self.findings),
            servers: self.servers.iter().map(ServerReport::document).collect(),
        }
    }
}

impl ServerReport {
    fn render(&self, text: &mut String, style: OutputStyle) {
        let name = visible(self.probed.server.name.as_str());
        let seconds = self.probed.took.as_secs_f64();
        match &self.probed.tools {
            Ok(list) => {
                let took = if self.probed.is_hosted {
                    "runs in the host".to_owned()
                } else {
                    format!("{seconds:.1} s")
                };
                text.push_str(&format!(
                    "  {name}: {}, {}, protocol {}, {took}\n",
                    style.paint(Ink::Good, "up"),
                    count(list.tools().len(), "tool"),
                    visible(&list.introduction.revision),
                ));
            }
            Err(_) if self.probed.is_unfinished() => text.push_str(&format!(
                "  {name}: {} after {seconds:.1} s\n",
                style.paint(Ink::Notable, "interrupted"),
            )),
            Err(_) => text.push_str(&format!("  {name}: {}\n", style.paint(Ink::Bad, "failed"))),
        }
        push_findings(text, &self.findings, style, "    ");
    }

    fn document(&self) -> ServerDocument<'_> {
        let list = self.probed.tools.as_ref().ok();
        let introduction = list.map(|list| &list.introduction);
        ServerDocument {
            name: self.probed.server.name.as_str(),
            status: match list {
                Some(_) => "up",
                None if self.probed.is_unfinished() => "interrupted",
                None => "failed",
            },
            milliseconds: u64::try_from(self.probed.took.as_millis()).unwrap_or(u64::MAX),
            tools: list.map(|list| list.tools().len()),
            protocol: introduction.map(|it| it.revision.as_str()),
            product: introduction.and_then(|it| it.product.as_deref()),
            hosted: self.probed.is_hosted,
            findings: documents(&self.findings),
        }
    }
}

fn push_findings(text: &mut String, findings: &[Finding], style: OutputStyle, indent: &str) {
    for finding in findings {
        let word = match finding.level() {
            Level::Wrong => style.paint(Ink::Bad, "wrong:"),
            Level::Remark => style.paint(Ink::Notable, "remark:"),
        };
        let words = finding.to_string();
        text.push_str(&format!("{indent}{word} {}\n", visible(&words)));
        for line in finding.stderr() {
            let line = style.paint(Ink::Faint, &format!("| {}", visible(line)));
            text.push_str(&format!("{indent}  {line}\n"));
        }
        let remedy = finding.remedy();
        text.push_str(&format!("{indent}  hint: {}\n", visible(&remedy)));
    }
}

fn documents(findings: &[Finding]) -> Vec<FindingDocument> {
    let documents = findings.iter().map(|finding| FindingDocument {
        level: finding.level(),
        code: finding.code(),
        text: finding.to_string(),
        hint: finding.remedy(),
        stderr: finding
            .stderr()
            .iter()
            .map(|line| visible(line).into_owned())
            .collect(),
    });
    documents.collect()
}

#[derive(Serialize)]
pub(super) struct ReportDocument<'a> {
    file: &'a str,
    healthy: bool,
    wrong: usize,
    remarks: usize,
    findings: Vec<FindingDocument>,
    toolboxes: Vec<ToolboxDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing: Option<&'a Sharing>,
}

#[derive(Serialize)]
struct ToolboxDocument<'a> {
    name: &'a str,
    findings: Vec<FindingDocument>,
    servers: Vec<ServerDocument<'a>>,
}

#[derive(Serialize)]
struct ServerDocument<'a> {
    name: &'a str,
    status: &'static str,
    milliseconds: u64,
    tools: Option<usize>,
    protocol: Option<&'a str>,
    product: Option<&'a str>,
    /// Set if it runs in the host and was not started again.
    hosted: bool,
    findings: Vec<FindingDocument>,
}

#[derive(Serialize)]
struct FindingDocument {
    level: Level,
    code: &'static str,
    text: String,
    hint: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stderr: Vec<String>,
}
