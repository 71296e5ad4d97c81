use std::path::Path;

use pretty_assertions::assert_eq;
use tokio::net::TcpListener;

use super::*;
use crate::{
    config::{Environment, parse},
    native::Nobody,
    oauth::CredentialOwner,
};

/// Creates a workbench with one remote server.
fn workbench(url: &str) -> Arc<Workbench> {
    let text = format!(
        r#"{{"toolboxes": {{"dev": {{"description": "d", "mcpServers": {{"remote": {{"url": "{url}"}}}}}}}}}}"#
    );
    let environment = Environment::new([], "/start".into(), None);
    let loaded = parse(&text, Path::new("c.json"), &environment).unwrap();
    Workbench::new(Arc::new(loaded.config), CredentialOwner::Machine)
}

#[tokio::test(start_paused = true)]
async fn a_search_waits_for_a_silent_server_once_and_names_it() {
    // It takes connections and says nothing.
    let unresponsive = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let workbench = workbench(&format!("http://{}/", unresponsive.local_addr().unwrap()));
    let client: Arc<dyn ClientHandle> = Arc::new(Nobody);
    let query = Query {
        text: "anything",
        toolbox: None,
        limit: 5,
    };
    for waited in [SEARCH_WAIT, Duration::ZERO] {
        let began = Instant::now();
        let search = workbench.search(&query, &client).await;
        assert_eq!(began.elapsed().as_secs(), waited.as_secs());
        let errors: Vec<String> = search
            .failures
            .iter()
            .map(|failure| format!("{}/{}: {}", failure.toolbox, failure.server, failure.error))
            .collect();
        assert_eq!(errors, ["dev/remote: still starting"]);
        assert_eq!((search.tools, search.servers), (0, 0));
    }
    // Nor is it after it has failed.
    tokio::time::advance(Duration::from_mins(3)).await;
    let began = Instant::now();
    let search = workbench.search(&query, &client).await;
    assert_eq!(began.elapsed().as_secs(), 0);
    assert_eq!(search.failures.len(), 1);
}
