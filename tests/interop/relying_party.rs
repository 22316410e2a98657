//! A relying party that others wrote takes Postrider's logout tokens, and no one else's.

use postrider::identity::{AccountId, NewClient, SessionId, create_account, create_session, register_client};
use postrider::signing::{SigningAlgorithm, SigningKey, SigningKeys};

use crate::apache::{Apache, PROTECTED};
use crate::browser::{Browser, Page};
use crate::provider::{CLIENT_ID, Provider, SESSION_COOKIE};
use crate::receivers::loopback;
use crate::world::World;

/// An identity provider, and Apache as its one client.
struct Site {
    world: World,
    provider: Provider,
    apache: Apache,
}

impl Site {
    /// Whose tokens are signed with this algorithm; keys of the others are published too.
    async fn new(algorithm: SigningAlgorithm) -> Self {
        let mut world = World::new().await;
        world.keys = SigningKeys::new(SigningAlgorithm::ALL.map(generate).into()).unwrap();
        let provider = Provider::start(&world.ca, world.database.pool().clone(), world.keys.clone(), algorithm).await;
        provider.issuer().clone_into(&mut world.issuer);
        let apache = Apache::start(&world.ca, provider.issuer(), algorithm).await;
        let uri = apache.backchannel_logout_uri();
        let client = NewClient {
            id: CLIENT_ID,
            name: "Apache",
            backchannel_logout_uri: Some(&uri),
            session_required: true,
            algorithm,
        };
        register_client(&mut world.database.connect().await, &client, &loopback()).await.unwrap();
        Self { world, provider, apache }
    }

    /// A new session of the account at the provider, and a browser that Apache knows by it.
    async fn signed_in(&self, account: AccountId) -> (SessionId, Browser) {
        let session = create_session(&mut self.world.database.connect().await, account).await.unwrap();
        let mut browser = Browser::new(&self.world.ca);
        browser.remember(self.provider.issuer(), SESSION_COOKIE, &session.0.to_string());
        let (visited, page) = browser.follow(&self.apache.url("/protected")).await;
        assert_eq!(page, Page::Shown(PROTECTED.into()), "after {visited:?}");
        assert_eq!(visited.len(), 4, "the page, the provider, back with a code, the page: {visited:?}");
        self.assert_signed_in(&mut browser).await;
        (session, browser)
    }

    async fn assert_signed_in(&self, browser: &mut Browser) {
        assert_eq!(browser.get(&self.apache.url("/protected")).await, Page::Shown(PROTECTED.into()));
    }

    async fn assert_signed_out(&self, browser: &mut Browser) {
        let page = browser.get(&self.apache.url("/protected")).await;
        let Page::Redirect(location) = page else { panic!("no sign-in is asked for: {page:?}") };
        assert!(location.starts_with(&format!("{}/authorize?", self.provider.issuer())), "{location}");
    }

    /// Signs out of the session and lets Postrider tell Apache; the delivery's status and last error.
    async fn revoke(&self, session: SessionId, ends_as: &str) -> Option<String> {
        let subsystem = self.world.start().await;
        let mut transaction = self.world.database.pool().begin().await.unwrap();
        let deliveries = self.world.sign_out(&mut transaction, session).await;
        transaction.commit().await.unwrap();
        assert_eq!(deliveries, 1, "Apache has tokens from the session");
        let row = self.world.becomes(CLIENT_ID, ends_as).await;
        subsystem.shut_down().await;
        assert_eq!(row.attempts, 1);
        row.last_error
    }
}

fn generate(algorithm: SigningAlgorithm) -> SigningKey {
    SigningKey::generate(algorithm).unwrap()
}

async fn ends_the_session_that_the_logout_token_names_and_no_other(algorithm: SigningAlgorithm) {
    let site = Site::new(algorithm).await;
    let (alice, mut of_alice) = site.signed_in(site.world.account).await;
    let (_, mut of_alice_elsewhere) = site.signed_in(site.world.account).await;
    let bob = create_account(&mut site.world.database.connect().await, "bob").await.unwrap();
    let (_, mut of_bob) = site.signed_in(bob).await;

    assert_eq!(site.revoke(alice, "succeeded").await, None);
    site.assert_signed_out(&mut of_alice).await;
    site.assert_signed_in(&mut of_bob).await;
    site.assert_signed_in(&mut of_alice_elsewhere).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mod_auth_openidc_ends_the_session_that_an_es256_logout_token_names_and_no_other() {
    ends_the_session_that_the_logout_token_names_and_no_other(SigningAlgorithm::Es256).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mod_auth_openidc_ends_the_session_that_an_rs256_logout_token_names_and_no_other() {
    ends_the_session_that_the_logout_token_names_and_no_other(SigningAlgorithm::Rs256).await;
}

/// Shows that the tests before could fail: Apache does not end a session for whoever asks.
#[tokio::test(flavor = "multi_thread")]
async fn mod_auth_openidc_refuses_a_logout_token_signed_with_a_key_that_is_not_published() {
    let mut site = Site::new(SigningAlgorithm::Es256).await;
    let (session, mut browser) = site.signed_in(site.world.account).await;
    site.world.keys = SigningKeys::new(vec![generate(SigningAlgorithm::Es256)]).unwrap();
    assert_eq!(site.revoke(session, "failed").await.as_deref(), Some("400"));
    site.assert_signed_in(&mut browser).await;
}
