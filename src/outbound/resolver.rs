//! One look-up per attempt, of an absolute name, judged as a whole.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use postrider_actors::Reason;
use url::Host;

use super::address::{AddressPolicy, PublicAddr};
use super::destination::Destination;

/// Addresses dialled at most in one attempt, of however many a name has. All of them are judged.
pub const MAX_ADDRESSES_TRIED: usize = 16;

/// One query's share of the connect budget, and how often it is repeated: 3 x 1.5 s fits in the 5 s.
const QUERY_TIMEOUT: Duration = Duration::from_millis(1500);
const QUERY_REPEATS: usize = 2;

pub(super) struct Resolver {
    dns: TokioResolver,
}

impl Resolver {
    /// Asks `name_server`, or those of /etc/resolv.conf as they are now. Its search list is left out.
    pub(super) fn new(name_server: Option<SocketAddr>) -> Result<Self, NetError> {
        let servers = match name_server {
            Some(address) => vec![one_server(address)],
            None => read_system_conf()?.0.name_servers().to_vec(),
        };
        let config = ResolverConfig::from_name_servers(servers);
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        set_options(builder.options_mut());
        builder.options_mut().use_hosts_file = ResolveHosts::Never;
        Ok(Self { dns: builder.build()? })
    }

    /// The addresses to dial, in order. An address in the URL is not looked up, but judged all the same.
    ///
    /// Any failure of the look-up, and an answer without address, is [`Reason::Dns`]. One refused address refuses the
    /// destination, whatever the others are: [`Reason::RefusedDestination`].
    pub(super) async fn resolve(
        &self,
        destination: &Destination,
        policy: &AddressPolicy,
    ) -> Result<Vec<PublicAddr>, Reason> {
        let ips: Vec<IpAddr> = match destination.host() {
            Host::Ipv4(v4) => vec![IpAddr::V4(*v4)],
            Host::Ipv6(v6) => vec![IpAddr::V6(*v6)],
            Host::Domain(name) => self.look_up(name).await?,
        };
        let admitted: Result<Vec<PublicAddr>, _> =
            ips.into_iter().map(|ip| policy.admit(SocketAddr::new(ip, destination.port()))).collect();
        let mut addresses = admitted.map_err(|_| Reason::RefusedDestination)?;
        addresses.truncate(MAX_ADDRESSES_TRIED);
        if addresses.is_empty() { Err(Reason::Dns) } else { Ok(addresses) }
    }

    async fn look_up(&self, host: &str) -> Result<Vec<IpAddr>, Reason> {
        let mut name = Name::from_ascii(host).map_err(|_| Reason::Dns)?;
        name.set_fqdn(true); // never a search suffix
        let found = self.dns.lookup_ip(name).await.map_err(|_| Reason::Dns)?;
        Ok(found.iter().collect())
    }
}

/// A name server on its port, UDP and TCP.
pub(crate) fn one_server(address: SocketAddr) -> NameServerConfig {
    let mut transports = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for transport in &mut transports {
        transport.port = address.port();
    }
    NameServerConfig::new(address.ip(), true, transports)
}

/// Every attempt asks anew, for both families, in a time that fits in a connect.
pub(crate) fn set_options(options: &mut ResolverOpts) {
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.cache_size = 0;
    options.timeout = QUERY_TIMEOUT;
    options.attempts = QUERY_REPEATS;
}
