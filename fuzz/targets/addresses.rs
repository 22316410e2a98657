//! An address that a name resolves to: nothing private is dialled, in whatever wrapping of IPv6.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use postrider::outbound::AddressPolicy;

fn admitted(address: impl Into<IpAddr>) -> bool {
    AddressPolicy::default().admit((address.into(), 443).into()).is_ok()
}

fn from_v4(prefix: [u16; 6], v4: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = v4.octets();
    let [p0, p1, p2, p3, p4, p5] = prefix;
    Ipv6Addr::new(p0, p1, p2, p3, p4, p5, u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

fuzz_target!(|bytes: [u8; 16]| {
    let v6 = Ipv6Addr::from(bytes);
    if admitted(v6) {
        assert!(!v6.is_loopback() && !v6.is_unspecified() && !v6.is_multicast());
        assert!(!v6.is_unique_local() && !v6.is_unicast_link_local());
    }
    let v4 = Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]);
    if admitted(v4) {
        assert!(!v4.is_loopback() && !v4.is_private() && !v4.is_link_local() && !v4.is_multicast());
        assert!(!v4.is_broadcast() && !v4.is_unspecified() && !v4.is_documentation());
    }
    assert_eq!(admitted(v4.to_ipv6_mapped()), admitted(v4));
    assert_eq!(admitted(from_v4([0x64, 0xff9b, 0, 0, 0, 0], v4)), admitted(v4));
    let [a, b, c, d] = v4.octets();
    let six_to_four = Ipv6Addr::new(0x2002, u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]), 0, 0, 0, 0, 1);
    assert_eq!(admitted(six_to_four), admitted(v4));
    assert!(!admitted(from_v4([0, 0, 0, 0, 0, 0], v4)), "IPv4-compatible");
    assert!(!admitted(from_v4([0, 0, 0, 0, 0xffff, 0], v4)), "translated");
    assert!(!admitted(from_v4([0x64, 0xff9b, 1, 0, 0, 0], v4)), "local-use NAT64");
});
