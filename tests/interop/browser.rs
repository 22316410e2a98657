//! A browser, as far as signing in takes one: cookies, and redirects one by one.

use std::collections::{BTreeMap, HashMap};

use postrider::outbound::header::{ACCEPT, COOKIE, HeaderValue, LOCATION, SET_COOKIE};
use postrider::outbound::{Bytes, HeaderMap, HttpsClient, MAX_BODY_BYTES, Method};
use url::Url;

use crate::receivers::{Ca, client, destination};

/// One person's.
pub struct Browser {
    client: HttpsClient,
    /// By port, as every server of a test is at 127.0.0.1.
    cookies: HashMap<u16, BTreeMap<String, String>>,
}

/// What a page came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Page {
    Shown(String),
    Redirect(String),
    Status(u16),
}

impl Browser {
    pub fn new(ca: &Ca) -> Self {
        Self { client: client(ca), cookies: HashMap::new() }
    }

    /// Has a cookie as if the server of `url` had set it.
    pub fn remember(&mut self, url: &str, name: &str, value: &str) {
        self.jar(url).insert(name.into(), value.into());
    }

    /// Fetches one page and follows nothing.
    pub async fn get(&mut self, url: &str) -> Page {
        let cookies: Vec<String> = self.jar(url).iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/html"))]);
        if !cookies.is_empty() {
            headers.insert(COOKIE, HeaderValue::from_str(&cookies.join("; ")).unwrap());
        }
        let reply = self.client.send(Method::GET, &destination(url), headers, Bytes::new()).await.unwrap();
        for set in reply.headers().get_all(SET_COOKIE) {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.jar(url).insert(name.into(), value.into());
        }
        self.jar(url).retain(|_, value| !value.is_empty());
        match reply.status.get() {
            200 => Page::Shown(String::from_utf8(reply.body(MAX_BODY_BYTES).await.bytes().to_vec()).unwrap()),
            302 => Page::Redirect(reply.headers()[LOCATION].to_str().unwrap().into()),
            status => Page::Status(status),
        }
    }

    /// Follows redirects to a page, noting where they lead.
    pub async fn follow(&mut self, url: &str) -> (Vec<String>, Page) {
        const AT_MOST: usize = 10;
        let mut visited = vec![url.to_owned()];
        while visited.len() < AT_MOST {
            match self.get(&visited[visited.len() - 1].clone()).await {
                Page::Redirect(location) => visited.push(location),
                page => return (visited, page),
            }
        }
        panic!("redirected for ever: {visited:?}");
    }

    fn jar(&mut self, url: &str) -> &mut BTreeMap<String, String> {
        self.cookies.entry(Url::parse(url).unwrap().port().unwrap()).or_default()
    }
}
