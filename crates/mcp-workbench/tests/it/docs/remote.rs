//! The guide to remote servers, followed to the letter, with an authority of the tests in place of the one that it speaks of.

use std::thread;

use pretty_assertions::assert_eq;

use super::{
    page::{Block, page},
    world::{Ran, World},
};
use crate::harness::authority::{Authority, Browser, Protected, follow};

const GUIDE: &str = "docs/guides/remote-servers.md";
/// The server of the guide, and where it has people sign in.
const SERVER: &str = "https://tracker.example.com/mcp";
const ISSUER: &str = "https://auth.example.com";

/// A reader at their machine, and the server that the guide speaks of.
struct Reader {
    world: World,
    authority: Authority,
    server: Protected,
}

impl Reader {
    fn new() -> Self {
        let authority = Authority::start();
        let server = Protected::start(&authority);
        server.set(|knobs| knobs.challenge_scope = Some("issues:read".to_owned()));
        Self {
            world: World::new(),
            authority,
            server,
        }
    }

    /// Runs a line; where a browser opens, the reader agrees.
    fn run(&self, line: &str) -> Ran {
        let line = line.replace(SERVER, &self.server.url());
        if !line.contains(" login ") {
            return self.world.run(&line);
        }
        let browser = Browser::in_folder(&self.world.path(""));
        let line = format!("BROWSER={} {line}", browser.program.display());
        thread::scope(|scope| {
            let running = scope.spawn(|| self.world.run(&line));
            follow(&browser.address(), |_| false);
            running.join().unwrap()
        })
    }

    /// Returns the output of a line that succeeds.
    #[track_caller]
    fn printed(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!(ran.code, 0, "{line}\n{}", ran.all());
        ran.stdout
    }
}

fn commands() -> Vec<Block> {
    let blocks = page(GUIDE).blocks().into_iter();
    blocks.filter(|block| block.language == "sh").collect()
}

/// Compares the last output of `login`.
pub(super) fn signed_in(block: &Block) {
    let reader = Reader::new();
    let mut said = String::new();
    for line in commands()[0].text.lines().take(3) {
        said = reader.printed(line);
    }
    let said = said.replace(&reader.authority.issuer(), ISSUER);
    let shown = block.text.lines().zip(said.lines()).map(|(shown, said)| {
        // A moment and a digest are others each time.
        let is_other = ["  until  ", "  stored  "]
            .iter()
            .any(|it| said.starts_with(it));
        let is_same_kind = shown.len() == said.len() || shown.starts_with("  stored  /home/me/");
        if is_other && is_same_kind {
            shown
        } else {
            said
        }
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        block.text.lines().collect::<Vec<_>>()
    );
    assert_eq!(said.lines().count(), block.text.lines().count());
}

#[test]
fn the_guide_to_remote_servers_can_be_followed_from_the_top() {
    let reader = Reader::new();
    let mut lines = 0;
    for block in commands() {
        for line in block.text.lines().filter(|it| !it.contains("--no-browser")) {
            let said = reader.printed(line);
            lines += 1;
            if line.contains("auth status") {
                assert!(said.contains("hosted/tracker: signed in"), "{said}");
            }
            if line.contains("list") {
                assert!(said.contains("tracker: 2 tools"), "{said}");
            }
            if line.contains("logout hosted") {
                assert_eq!(said, "signed out of hosted/tracker\n");
            }
        }
    }
    assert!(lines >= 7, "only {lines} lines");
    assert_eq!(reader.authority.refresh_tokens(), 0);
}
