//! The servers leave nothing behind, or a machine would fill up with them.

use crate::postfix::Postfix;
use crate::receivers::Ca;
use crate::support::eventually;

#[tokio::test]
async fn postfix_ends_with_its_value_and_so_does_its_folder() {
    let mut postfix = Postfix::start(&Ca::new()).await;
    postfix.restart().await;
    let (folder, master) = (postfix.folder().to_owned(), postfix.master());
    assert!(is_running(master) && folder.exists());
    drop(postfix);
    assert!(!is_running(master));
    assert!(!folder.exists());
}

/// As when the tests are ended from outside.
#[tokio::test]
async fn postfix_ends_when_the_process_that_started_it_is_gone_without_a_word() {
    let mut postfix = Postfix::start(&Ca::new()).await;
    let (folder, master) = (postfix.folder().to_owned(), postfix.master());
    postfix.abandon();
    eventually(crate::world::SOON, "Postfix and its folder are gone", async || !is_running(master) && !folder.exists())
        .await;
}

/// Whether a process of the group is left that has not ended.
fn is_running(leader: i32) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok()).any(|stat| {
        // proc(5): the name in parentheses, state, parent, group.
        let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        let (state, group) = (fields.next().unwrap(), fields.nth(1).unwrap());
        group == leader.to_string() && state != "Z"
    })
}
