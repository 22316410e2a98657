//! The settings of e-mail.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use url::Url;

use super::arguments::ServeArguments;
use crate::channel::Channel;
use crate::channels::{Announcement, Email};
use crate::cli::failure::{Exit, Failure};
use crate::content::{Letterhead, Renderer};
use crate::identity::ReferenceDirectory;
use crate::links::{LinkKey, LinkKeys, Links, Page, Pages};
use crate::mail::smtp::{Relay, Smtp, SmtpConfig};
use crate::mail::{DkimSigner, EmailAddress, Mailbox, Mailer};
use crate::signing::SigningKey;

/// What an attempt keeps of its time for rendering, so that it is the relay's slowness that is named.
const BEFORE_THE_SEND_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
#[command(next_help_heading = "E-mail")]
pub(super) struct MailArguments {
    /// A relay: smtps://user:password@host:465, smtp://user:password@host:587 with STARTTLS, or smtp+plain://127.0.0.1:25.
    /// Given again, the next to be tried; in the environment, separated by commas. Without any, e-mail is dropped.
    #[arg(
        long = "smtp-url",
        env = "POSTRIDER_SMTP_URLS",
        hide_env_values = true,
        value_name = "URL",
        value_delimiter = ','
    )]
    smtp_urls: Vec<String>,

    /// Who e-mail is from: an address. Default: no-reply at the issuer's host.
    #[arg(long, env = "POSTRIDER_MAIL_FROM", value_name = "ADDRESS")]
    mail_from: Option<String>,

    /// What the service is called in e-mails. Default: the issuer's host.
    #[arg(long, env = "POSTRIDER_SERVICE_NAME", value_name = "NAME")]
    service_name: Option<String>,

    /// Where the pages are that e-mails link. Default: the issuer.
    #[arg(long, env = "POSTRIDER_PAGES", value_name = "URL")]
    pages: Option<String>,

    /// The path below --pages of the page that lists alerts, which each alert then links. Default: there is none.
    #[arg(long, env = "POSTRIDER_ALERTS_PAGE", value_name = "PATH")]
    alerts_page: Option<String>,

    /// A file with a key that the tokens of links are derived from; the first derives new ones, all are tried. In the
    /// environment, separated by commas.
    #[arg(long = "link-key", env = "POSTRIDER_LINK_KEYS", value_name = "FILE", value_delimiter = ',')]
    link_keys: Vec<PathBuf>,

    /// What this machine calls itself to relays. Default: the domain of --mail-from.
    #[arg(long, env = "POSTRIDER_SMTP_HELO", value_name = "NAME")]
    smtp_helo: Option<String>,

    /// A file with an RSA or Ed25519 key that messages are signed with (DKIM), where the relay does not: the domain is
    /// that of --mail-from.
    #[arg(long, env = "POSTRIDER_DKIM_KEY", value_name = "FILE", requires = "dkim_selector")]
    dkim_key: Option<PathBuf>,

    /// The name under which the DKIM key is published: NAME._domainkey below the domain.
    #[arg(long, env = "POSTRIDER_DKIM_SELECTOR", value_name = "NAME", requires = "dkim_key")]
    dkim_selector: Option<String>,

    /// Lets smtp+plain relays be on other machines, where anyone between can read and change what is sent.
    #[arg(long)]
    allow_plain_smtp_to_any_host: bool,
}

/// The mail channels, and what their links are made of where there are keys.
pub(super) struct MailPlan {
    pub(super) channels: [Arc<dyn Channel>; 2],
    pub(super) link_keys: Option<LinkKeys>,
    /// Where mail goes, for people.
    pub(super) told: String,
}

impl MailPlan {
    pub(super) fn new(arguments: &ServeArguments, send_timeout: Duration) -> Result<Self, Failure> {
        let mail = &arguments.mail;
        let host = Url::parse(&arguments.issuer).ok().and_then(|issuer| issuer.host_str().map(str::to_owned));
        let host = host.unwrap_or_default();
        let from = mail.from(&host)?;
        let base = mail.pages.as_deref().unwrap_or(&arguments.issuer);
        let pages = Pages::new(base).map_err(|error| refused("--pages (POSTRIDER_PAGES) cannot be used", &error))?;
        let pages = match &mail.alerts_page {
            Some(path) => pages
                .with_path(Page::Alerts, path)
                .map_err(|error| refused("--alerts-page (POSTRIDER_ALERTS_PAGE) cannot be used", &error))?,
            None => pages,
        };
        let service = mail.service_name.clone().unwrap_or_else(|| host.clone());
        let letterhead = Letterhead { service, home: pages.home() };
        let renderer = || Renderer::new(&letterhead).map_err(|error| Failure::of(Exit::Failed, &error));
        let link_keys = mail.link_keys()?;
        // Without a relay nothing is linked.
        let keys = link_keys.clone().map_or_else(unused_keys, Ok)?;
        let links = Links { pages, keys };
        let dkim = mail.dkim(&from)?;
        let mailer = || {
            let mailer = Mailer::new(from.clone(), renderer()?, mail.smtp(arguments, &from, send_timeout)?);
            Ok::<_, Failure>(match &dkim {
                Some(dkim) => mailer.signing(Arc::clone(dkim)),
                None => mailer,
            })
        };
        let directory = Arc::new(ReferenceDirectory);
        let email = Email::new(directory.clone(), links.clone(), mailer()?);
        let announcement = Announcement::new(directory, links, mailer()?);
        let channels: [Arc<dyn Channel>; 2] = [Arc::new(email), Arc::new(announcement)];
        Ok(Self { channels, link_keys, told: mail.told(&from)? })
    }
}

impl MailArguments {
    fn from(&self, host: &str) -> Result<Mailbox, Failure> {
        let default = || match self.smtp_urls.is_empty() {
            // Nothing is sent, whatever the issuer's host is.
            true => "no-reply@not-configured.invalid".to_owned(),
            false => format!("no-reply@{host}"),
        };
        let text = self.mail_from.clone().unwrap_or_else(default);
        let address = EmailAddress::parse(&text)
            .map_err(|error| refused(format!("--mail-from (POSTRIDER_MAIL_FROM) {text:?} is no address"), &error))?;
        Ok(Mailbox { name: self.service_name.clone(), address })
    }

    fn relays(&self) -> Result<Vec<Relay>, Failure> {
        let relays = self.smtp_urls.iter().enumerate().map(|(index, url)| {
            let what = format!("--smtp-url (POSTRIDER_SMTP_URLS) number {}", index + 1);
            Relay::parse(url).map_err(|error| refused(what, &error))
        });
        relays.collect()
    }

    fn told(&self, from: &Mailbox) -> Result<String, Failure> {
        let relays: Vec<String> = self.relays()?.iter().map(Relay::to_string).collect();
        if relays.is_empty() {
            return Ok("e-mail is dropped: no relay is named with --smtp-url".to_owned());
        }
        Ok(format!("e-mail from {} through {}", from.address, relays.join(", else ")))
    }

    /// Needed where anything is sent.
    fn link_keys(&self) -> Result<Option<LinkKeys>, Failure> {
        const ADVICE: &str = "`postrider keys generate-link-key FILE` makes one; every replica needs the same";
        if !self.link_keys.is_empty() {
            let keys = LinkKeys::from_files(&self.link_keys);
            let failed = |error| refused("--link-key (POSTRIDER_LINK_KEYS) cannot be used", &error).advise(ADVICE);
            return keys.map(Some).map_err(failed);
        }
        if self.smtp_urls.is_empty() {
            return Ok(None);
        }
        let what = "no link key: --link-key (POSTRIDER_LINK_KEYS) is needed where e-mail is sent";
        Err(Failure::new(Exit::Usage, what).advise(ADVICE))
    }

    fn dkim(&self, from: &Mailbox) -> Result<Option<Arc<DkimSigner>>, Failure> {
        let (Some(file), Some(selector)) = (&self.dkim_key, &self.dkim_selector) else { return Ok(None) };
        let key = SigningKey::from_pem_file(file);
        let key = key.map_err(|error| refused("--dkim-key (POSTRIDER_DKIM_KEY) cannot be used", &error))?;
        let signer = DkimSigner::new(from.address.domain(), selector, key);
        let what = "--dkim-key or --dkim-selector (POSTRIDER_DKIM_SELECTOR) cannot be used";
        signer.map(|signer| Some(Arc::new(signer))).map_err(|error| refused(what, &error))
    }

    fn smtp(
        &self,
        arguments: &ServeArguments,
        from: &Mailbox,
        send_timeout: Duration,
    ) -> Result<Option<Smtp>, Failure> {
        if self.smtp_urls.is_empty() {
            return Ok(None);
        }
        let helo = self.smtp_helo.clone().unwrap_or_else(|| from.address.domain().to_owned());
        let mut config = SmtpConfig::new(self.relays()?, helo);
        config.extra_roots = arguments.extra_roots.clone();
        config.name_server = arguments.name_server;
        config.allow_plain_to_any_host = self.allow_plain_smtp_to_any_host;
        config.total_timeout = send_timeout.saturating_sub(BEFORE_THE_SEND_TIMEOUT).max(send_timeout / 2);
        Smtp::new(config).map(Some).map_err(|error| refused("e-mail cannot be sent with these settings", &error))
    }
}

fn unused_keys() -> Result<LinkKeys, Failure> {
    let key = LinkKey::generate().map_err(|error| Failure::of(Exit::Failed, &error))?;
    LinkKeys::new(&[key]).map_err(|error| Failure::of(Exit::Failed, &error))
}

fn refused(what: impl Into<String>, error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Usage, what).because(error)
}
