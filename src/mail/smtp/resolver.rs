//! The addresses of a relay, which the operator named: the machine's own way of looking up counts here, and a private
//! address is as good as any.

use std::net::{IpAddr, SocketAddr};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use postrider_actors::Reason;
use url::Host;

use super::relay::Relay;
use crate::outbound::resolver::{MAX_ADDRESSES_TRIED, one_server, set_options};

pub(super) struct Resolver {
    /// `None`: no relay has a name to look up.
    dns: Option<TokioResolver>,
}

impl Resolver {
    /// Asks `name_server` alone; else /etc/hosts and the servers of /etc/resolv.conf, as they are now.
    pub(super) fn new(name_server: Option<SocketAddr>, relays: &[Relay]) -> Result<Self, NetError> {
        if relays.iter().all(|relay| known(relay).is_some()) {
            return Ok(Self { dns: None });
        }
        let mut builder = match name_server {
            Some(address) => TokioResolver::builder_with_config(
                ResolverConfig::from_name_servers(vec![one_server(address)]),
                TokioRuntimeProvider::default(),
            ),
            None => TokioResolver::builder_tokio()?,
        };
        let options = builder.options_mut();
        set_options(options);
        options.use_hosts_file = if name_server.is_some() { ResolveHosts::Never } else { ResolveHosts::Always };
        Ok(Self { dns: Some(builder.build()?) })
    }

    /// Where to connect to, in order. [`Reason::Dns`] where the name has no address or could not be looked up.
    pub(super) async fn resolve(&self, relay: &Relay) -> Result<Vec<SocketAddr>, Reason> {
        let ips = match (known(relay), relay.host(), &self.dns) {
            (Some(ips), _, _) => ips,
            (None, Host::Domain(name), Some(dns)) => {
                let found = dns.lookup_ip(name.as_str()).await.map_err(|_| Reason::Dns)?;
                found.iter().take(MAX_ADDRESSES_TRIED).collect()
            }
            _ => Vec::new(),
        };
        if ips.is_empty() {
            return Err(Reason::Dns);
        }
        Ok(ips.into_iter().map(|ip| SocketAddr::new(ip, relay.port())).collect())
    }
}

/// Of an address, and of `localhost`.
fn known(relay: &Relay) -> Option<Vec<IpAddr>> {
    match relay.host() {
        Host::Ipv4(v4) => Some(vec![(*v4).into()]),
        Host::Ipv6(v6) => Some(vec![(*v6).into()]),
        Host::Domain(_) => relay.loopback(),
    }
}
