//! What runs for the second act beside the actors: the mailbox and the provider's pages. Both end when this is dropped.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio_rustls::TlsAcceptor;

use super::super::DemoError;
use super::super::authority::Authority;
use super::super::mailbox::Mailbox;
use super::super::pace::Pace;
use super::error::MailSetupError;
use super::site::{Listening, Site};
use crate::channel::Channel;
use crate::channels::{Announcement, Email};
use crate::content::{Letterhead, Renderer};
use crate::identity::ReferenceDirectory;
use crate::links::{LinkKey, LinkKeys, Links, Page, Pages};
use crate::mail::smtp::{Relay, Smtp, SmtpConfig};
use crate::mail::{self, EmailAddress, Mailer};
use crate::outbound::tls;
use crate::unsubscribe::{Unsubscribe, router};

const LOOPBACK: &str = "127.0.0.1";
/// What the provider calls itself to relays; also the right side of every Message-ID.
pub(super) const DOMAIN: &str = "id.example.com";
const SERVICE: &str = "Example ID";
const USER: &str = "postrider";
const PASSWORD: &str = "demo";

pub(in crate::demo) struct MailStage {
    pub(super) mailbox: Mailbox,
    pub(super) links: Links,
    /// What a mail client trusts.
    pub(super) client_tls: Arc<ClientConfig>,
    channels: [Arc<dyn Channel>; 2],
    _site: Site,
}

impl MailStage {
    /// Starts mailbox and pages, and makes the channels that write to it.
    pub(in crate::demo) async fn set(
        database: &PgConnectOptions,
        authority: &Authority,
        pace: &Pace,
    ) -> Result<Self, DemoError> {
        let listen = |source| DemoError::Listen { host: LOOPBACK, source };
        let listening = Listening::on(LOOPBACK).await.map_err(listen)?;
        let links = links(listening.address().map_err(listen)?)?;
        // The host's own pool, as far as this host needs one.
        let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(database.clone());
        let unsubscribe = Unsubscribe::new(Arc::new(ReferenceDirectory), links.keys.clone(), pool);
        let pages = axum::Router::new().nest("/u", router(unsubscribe));
        let site = listening.serve(authority.certify(LOOPBACK)?, pages);

        let mailbox = Mailbox::start(Some(TlsAcceptor::from(authority.certify(LOOPBACK)?))).await.map_err(listen)?;
        mailbox.require_login(USER, PASSWORD);
        let channels = channels(&links, mailbox.address(), authority, pace)?;
        let client_tls = tls::client_config(Some(&authority.root_certificate())).map_err(MailSetupError::Tls)?;
        Ok(Self { mailbox, links, client_tls: Arc::new(client_tls), channels, _site: site })
    }

    pub(in crate::demo) fn channels(&self) -> [Arc<dyn Channel>; 2] {
        self.channels.clone()
    }
}

fn links(site: SocketAddr) -> Result<Links, DemoError> {
    let pages = Pages::new(&format!("https://{site}/"))
        .and_then(|pages| pages.with_path(Page::Alerts, "/alerts")?.with_path(Page::Unsubscribe, "/u/{token}"));
    let keys = LinkKeys::new(&[LinkKey::generate()?]).map_err(MailSetupError::LinkKeys)?;
    Ok(Links { pages: pages.map_err(MailSetupError::Pages)?, keys })
}

fn channels(
    links: &Links,
    mailbox: SocketAddr,
    authority: &Authority,
    pace: &Pace,
) -> Result<[Arc<dyn Channel>; 2], MailSetupError> {
    let mailer = || {
        let relay = Relay::parse(&format!("smtps://{USER}:{PASSWORD}@{mailbox}"))?;
        let mut config = SmtpConfig::new(vec![relay], DOMAIN);
        config.extra_roots = Some(authority.root_certificate());
        config.total_timeout = pace.send_timeout * 19 / 20;
        let from =
            mail::Mailbox { name: Some(SERVICE.into()), address: EmailAddress::parse("no-reply@id.example.com")? };
        let renderer = Renderer::new(&Letterhead { service: SERVICE.into(), home: links.pages.home() })?;
        Ok::<_, MailSetupError>(Mailer::new(from, renderer, Some(Smtp::new(config)?)))
    };
    let directory = Arc::new(ReferenceDirectory);
    let email = Email::new(directory.clone(), links.clone(), mailer()?);
    Ok([Arc::new(email), Arc::new(Announcement::new(directory, links.clone(), mailer()?))])
}
