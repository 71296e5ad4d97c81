//! The files of the page. They are part of the program, and the page loads nothing else.

/// A file of the page: its path, its media type and its text.
pub(super) struct Asset {
    path: &'static str,
    pub(super) media_type: &'static str,
    pub(super) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const ICON: &str = "image/svg+xml";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const ASSETS: &[Asset] = &[
    Asset {
        path: "/ui/",
        media_type: HTML,
        text: include_str!("page/index.html"),
    },
    Asset {
        path: "/ui/icon.svg",
        media_type: ICON,
        text: include_str!("page/icon.svg"),
    },
    Asset {
        path: "/ui/page.css",
        media_type: CSS,
        text: include_str!("page/page.css"),
    },
    Asset {
        path: "/ui/page.js",
        media_type: SCRIPT,
        text: include_str!("page/page.js"),
    },
    Asset {
        path: "/ui/element.js",
        media_type: SCRIPT,
        text: include_str!("page/element.js"),
    },
    Asset {
        path: "/ui/servers.js",
        media_type: SCRIPT,
        text: include_str!("page/servers.js"),
    },
    Asset {
        path: "/ui/calls.js",
        media_type: SCRIPT,
        text: include_str!("page/calls.js"),
    },
    Asset {
        path: "/ui/approvals.js",
        media_type: SCRIPT,
        text: include_str!("page/approvals.js"),
    },
    Asset {
        path: "/ui/trust.js",
        media_type: SCRIPT,
        text: include_str!("page/trust.js"),
    },
    Asset {
        path: "/ui/tools.js",
        media_type: SCRIPT,
        text: include_str!("page/tools.js"),
    },
    Asset {
        path: "/ui/form.js",
        media_type: SCRIPT,
        text: include_str!("page/form.js"),
    },
    Asset {
        path: "/ui/tokens.js",
        media_type: SCRIPT,
        text: include_str!("page/tokens.js"),
    },
];

/// Returns the file at a path.
pub(super) fn asset(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound that keeps the page one that loads at once.
    const MAX_BYTES: usize = 150 * 1024;

    #[test]
    fn the_page_is_small_and_loads_nothing_from_elsewhere() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.text.len()).sum();
        assert!(bytes <= MAX_BYTES, "{bytes}");
        for asset in ASSETS {
            // The name of a namespace is not loaded.
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            for address in ["http://", "https://", "innerHTML", "eval("] {
                assert!(!text.contains(address), "{}: {address}", asset.path);
            }
        }
    }
}
