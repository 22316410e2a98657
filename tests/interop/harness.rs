//! The servers leave nothing behind, or a machine would fill up with them.

use std::path::Path;

use crate::postfix::Postfix;
use crate::receivers::Ca;
use crate::support::eventually;

#[tokio::test]
async fn postfix_ends_with_its_value_and_so_does_its_folder() {
    let mut postfix = Postfix::start(&Ca::new()).await;
    postfix.restart().await;
    let (folder, master) = (postfix.folder().to_owned(), postfix.master());
    assert!(is_running(master));
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

fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}
