//! Several workbenches that share a catalogue.

use super::*;

#[test]
fn many_that_write_at_once_leave_a_whole_list() {
    let folder = TempDir::new().unwrap();
    let server = program(&[]);
    let many: Vec<String> = (0..500).map(|number| format!("tool_{number}")).collect();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (folder, server, many) = (&folder, &server, &many);
            scope.spawn(move || {
                let lists = KeptLists::new(Some(folder.path()), None);
                for round in 0..50 {
                    let count = 1 + (writer + round) % many.len();
                    let tools: Vec<&str> = many[..count].iter().map(String::as_str).collect();
                    lists
                        .keep((server, None), &snapshot(&tools), &Secrets::default())
                        .unwrap();
                    let read = names(lists.recall(server)).expect("a whole list");
                    assert_eq!(read, many[..read.len()]);
                }
            });
        }
    });
    let left = fs::read_dir(folder.path().join(FOLDER)).unwrap().count();
    assert_eq!(left, 2, "the list and the salt");
}
