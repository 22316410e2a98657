//! Which addresses may be dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use postrider::outbound::AddressPolicy;
use proptest::prelude::*;

use crate::support::rows;

fn admits(policy: &AddressPolicy, ip: IpAddr) -> bool {
    policy.admit(SocketAddr::new(ip, 443)).is_ok()
}

#[test]
fn every_address_is_judged_by_the_most_specific_registry_block() {
    let strict = AddressPolicy::default();
    let wrong: Vec<String> = rows("addresses.csv")
        .into_iter()
        .filter(|row| {
            let allowed = match &*row["verdict"] {
                "allow" => true,
                "refuse" => false,
                other => panic!("verdict {other}"),
            };
            admits(&strict, row["address"].parse().unwrap()) != allowed
        })
        .map(|row| format!("{} should be {}: {}", row["address"], row["verdict"], row["reason"]))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_admitted_address_keeps_ip_and_port_and_loses_its_scope() {
    let scoped = SocketAddrV6::new("2606:4700:4700::1111".parse().unwrap(), 8443, 7, 3);
    let admitted = AddressPolicy::default().admit(scoped.into()).unwrap();
    assert_eq!(admitted.socket_addr(), SocketAddr::new((*scoped.ip()).into(), 8443));
    assert_eq!(admitted.socket_addr().to_string(), "[2606:4700:4700::1111]:8443");
}

#[test]
fn a_loosened_policy_admits_its_networks_and_nothing_more() {
    let policy = AddressPolicy::allowing_networks_for_tests_and_demos(vec!["127.0.0.0/8".parse().unwrap()]);
    for admitted in ["127.0.0.1", "127.255.255.255", "::ffff:127.0.0.1", "8.8.8.8"] {
        assert!(admits(&policy, admitted.parse().unwrap()), "{admitted}");
    }
    for refused in ["10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b:1::7f00:1"] {
        assert!(!admits(&policy, refused.parse().unwrap()), "{refused}");
    }
    assert_eq!(policy.extra_networks().len(), 1);
    assert!(AddressPolicy::default().extra_networks().is_empty());
}

/// Every form that carries an IPv4 address inside an IPv6 one.
fn wrappers(v4: Ipv4Addr) -> [(&'static str, Ipv6Addr); 7] {
    let [high, low] = [(u32::from(v4) >> 16) as u16, u32::from(v4) as u16];
    [
        ("mapped", Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low)),
        ("compatible", Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low)),
        ("translated", Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low)),
        ("NAT64", Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)),
        ("local-use NAT64", Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low)),
        ("6to4", Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)),
        ("Teredo", Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low)),
    ]
}

fn not_global() -> impl Strategy<Value = Ipv4Addr> {
    let block = prop::sample::select(vec![
        ([0, 0, 0, 0], 8),
        ([10, 0, 0, 0], 8),
        ([100, 64, 0, 0], 10),
        ([127, 0, 0, 0], 8),
        ([169, 254, 0, 0], 16),
        ([172, 16, 0, 0], 12),
        ([192, 0, 2, 0], 24),
        ([192, 88, 99, 0], 24),
        ([192, 168, 0, 0], 16),
        ([198, 18, 0, 0], 15),
        ([198, 51, 100, 0], 24),
        ([203, 0, 113, 0], 24),
        ([224, 0, 0, 0], 3),
    ]);
    (block, any::<u32>()).prop_map(|((network, length), host)| {
        Ipv4Addr::from(u32::from(Ipv4Addr::from(network)) | (host & (u32::MAX >> length)))
    })
}

proptest! {
    #[test]
    fn c02_no_wrapper_carries_a_non_global_ipv4_address_past_the_check(v4 in not_global()) {
        let strict = AddressPolicy::default();
        prop_assert!(!admits(&strict, v4.into()));
        for (form, wrapped) in wrappers(v4) {
            prop_assert!(!admits(&strict, wrapped.into()), "{} {}", form, wrapped);
        }
    }

    #[test]
    fn c02_mapped_nat64_and_6to4_are_judged_exactly_as_the_ipv4_address_they_reach(bits: u32) {
        let strict = AddressPolicy::default();
        let v4 = Ipv4Addr::from(bits);
        for (form, wrapped) in wrappers(v4) {
            let judged_by_embedded = matches!(form, "mapped" | "NAT64" | "6to4");
            let expected = judged_by_embedded && admits(&strict, v4.into());
            prop_assert_eq!(admits(&strict, wrapped.into()), expected, "{} {}", form, wrapped);
        }
    }

    #[test]
    fn ipv6_outside_global_unicast_is_refused(bits: u128) {
        let v6 = Ipv6Addr::from(bits);
        prop_assume!(bits >> 125 != 1);
        prop_assert!(!admits(&AddressPolicy::default(), v6.into()));
    }
}
