//! Links between pages: files exist, and headings are where links say.

use super::{
    none,
    page::{Page, pages, root},
};

/// The targets of the links on a line, pictures included.
fn targets(text: &str) -> Vec<&str> {
    let starts = text.split("](").skip(1);
    starts
        .filter_map(|rest| rest.split([')', ' ']).next())
        .collect()
}

/// How a heading is called in a link.
fn anchor(heading: &str) -> String {
    let mut anchor = String::new();
    for char in heading.trim().to_lowercase().chars() {
        match char {
            ' ' => anchor.push('-'),
            char if char.is_alphanumeric() || char == '-' || char == '_' => anchor.push(char),
            _ => {}
        }
    }
    anchor
}

fn anchors(page: &Page) -> Vec<String> {
    let prose = page.prose();
    let headings = prose.iter().filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| anchor(line.trim_start_matches('#')))
        .collect()
}

/// Returns the problem with a link from a page.
fn fault(page: &Page, target: &str, pages: &[Page]) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, wanted) = target.split_once('#').unwrap_or((target, ""));
    let folder = root().join(&page.path).parent().unwrap().to_owned();
    let path = match file {
        "" => root().join(&page.path),
        file => folder.join(file),
    };
    let Ok(path) = path.canonicalize() else {
        return Some(format!("{target} does not exist"));
    };
    if wanted.is_empty() {
        return None;
    }
    let root = root().canonicalize().unwrap();
    let path = path.strip_prefix(root).unwrap().display().to_string();
    let found = pages.iter().find(|it| it.path == path)?;
    (!anchors(found).contains(&wanted.to_owned())).then(|| format!("{target}: no such heading"))
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut findings = Vec::new();
    let mut links = 0;
    for page in &pages {
        // A link may go on in the next line.
        let prose: Vec<&str> = page.prose().iter().map(|(_, line)| *line).collect();
        for target in targets(&prose.join("\n")) {
            links += 1;
            if let Some(fault) = fault(page, target, &pages) {
                findings.push(format!("{}: {fault}", page.path));
            }
        }
    }
    assert!(links > 100, "only {links} links");
    none(&findings);
}

#[test]
fn every_page_is_in_the_index() {
    let pages = pages();
    let index = pages.iter().find(|it| it.path == "docs/README.md").unwrap();
    let below = |page: &Page| page.path.strip_prefix("docs/").map(str::to_owned);
    // Decisions are linked as a folder.
    let missing: Vec<String> = pages
        .iter()
        .filter_map(below)
        .filter(|path| !path.starts_with("decisions/") && path != "README.md")
        .filter(|path| !index.text.contains(&format!("]({path})")))
        .collect();
    none(&missing);
}
