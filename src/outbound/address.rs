//! Which addresses may be dialled, and the type that proves that one may.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;

use super::registry::{embedded_v4, is_global_v4, is_global_v6};

/// Decides which addresses may be dialled. Its default admits globally reachable ones and nothing else.
#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    extra: Vec<IpNet>,
}

/// An address that a policy admitted. Nothing else is ever dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicAddr(SocketAddr);

/// The address is not globally reachable (IANA special-purpose registries, multicast, reserved).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address is not globally reachable")]
pub struct RefusedAddress;

impl AddressPolicy {
    /// Also admits `networks`, however private: **for tests and demos**, whose receivers listen on loopback.
    ///
    /// Whoever may name a destination can then reach these networks, so a client built with it says so in a warning.
    /// An IPv4 network also admits the IPv6 addresses that embed one of its addresses. `localhost` resolves to
    /// 127.0.0.1 and ::1, and is admitted only where both are.
    pub fn allowing_networks_for_tests_and_demos(networks: Vec<IpNet>) -> Self {
        Self { extra: networks }
    }

    /// The networks admitted beyond the globally reachable ones; empty under the strict policy.
    pub fn extra_networks(&self) -> &[IpNet] {
        &self.extra
    }

    /// Admits an address to be dialled. IPv4-mapped, NAT64 (64:ff9b::/96) and 6to4 addresses are judged as the IPv4
    /// address they reach. A scope id or flow label does not survive.
    ///
    /// # Errors
    /// [`RefusedAddress`] where neither the registries nor an extra network admit it.
    pub fn admit(&self, address: SocketAddr) -> Result<PublicAddr, RefusedAddress> {
        let ip = address.ip();
        if self.admits(ip) { Ok(PublicAddr(SocketAddr::new(ip, address.port()))) } else { Err(RefusedAddress) }
    }

    pub(super) fn admits(&self, ip: IpAddr) -> bool {
        if self.extra.iter().any(|network| network.contains(&ip)) {
            return true;
        }
        match ip {
            IpAddr::V4(v4) => is_global_v4(v4),
            IpAddr::V6(v6) => embedded_v4(v6).map_or_else(|| is_global_v6(v6), |v4| self.admits(IpAddr::V4(v4))),
        }
    }

    pub(super) fn admits_loopback(&self) -> bool {
        self.admits(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }
}

impl PublicAddr {
    /// The address to dial.
    pub const fn socket_addr(self) -> SocketAddr {
        self.0
    }
}
