//! The servers leave nothing behind, or a machine would fill up with them.

use std::net::TcpListener;

use postrider::signing::SigningAlgorithm;

use crate::apache::Apache;
use crate::host::group_has_ended;
use crate::postfix::{Ports, Postfix};
use crate::receivers::Ca;
use crate::support::eventually;

#[tokio::test]
async fn postfix_ends_with_its_value_and_so_does_its_folder() {
    let mut postfix = Postfix::start(&Ca::new()).await;
    postfix.restart().await;
    let (folder, master) = (postfix.folder().to_owned(), postfix.master());
    assert!(!group_has_ended(master) && folder.exists());
    drop(postfix);
    assert!(group_has_ended(master));
    assert!(!folder.exists());
}

/// As when the tests are ended from outside.
#[tokio::test]
async fn postfix_ends_when_the_process_that_started_it_is_gone_without_a_word() {
    let mut postfix = Postfix::start(&Ca::new()).await;
    let (folder, master) = (postfix.folder().to_owned(), postfix.master());
    postfix.abandon();
    eventually(crate::world::SOON, "Postfix and its folder are gone", async || {
        group_has_ended(master) && !folder.exists()
    })
    .await;
}

#[tokio::test]
async fn a_server_whose_port_was_taken_meanwhile_is_tried_on_another() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().port();
    let ca = Ca::new();
    let ports = Ports { bare: taken, ..Ports::free() };
    assert!(Postfix::try_start(&ca, ports).await.is_none());
    let apache = Apache::try_start(&ca, "https://127.0.0.1", SigningAlgorithm::Es256, taken).await;
    assert!(apache.is_none());
}
