//! Which addresses are globally reachable, by the IANA registries. Pure: no policy, no I/O.
//!
//! Sources: the IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its updates), IPv4 multicast
//! (RFC 5771) and the IPv6 address space (RFC 4291). A block is reachable only where its "Globally Reachable" cell
//! says true; an empty cell or N/A is a no.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A block of IPv4 addresses: network, prefix length, whether it is globally reachable.
type BlockV4 = ([u8; 4], u32, bool);
/// A block of IPv6 addresses: network, prefix length, whether it is globally reachable.
type BlockV6 = ([u16; 8], u32, bool);

const V4: &[BlockV4] = &[
    ([0, 0, 0, 0], 8, false),        // this network
    ([10, 0, 0, 0], 8, false),       // private use
    ([100, 64, 0, 0], 10, false),    // shared address space
    ([127, 0, 0, 0], 8, false),      // loopback
    ([168, 63, 129, 16], 32, false), // a cloud platform's host: public unicast, reachable only from inside it
    ([169, 254, 0, 0], 16, false),   // link local
    ([172, 16, 0, 0], 12, false),    // private use
    ([192, 0, 0, 0], 24, false),     // IETF protocol assignments
    ([192, 0, 0, 9], 32, true),      // PCP anycast
    ([192, 0, 0, 10], 32, true),     // TURN anycast
    ([192, 0, 2, 0], 24, false),     // documentation
    ([192, 31, 196, 0], 24, true),   // AS112-v4
    ([192, 52, 193, 0], 24, true),   // AMT
    ([192, 88, 99, 0], 24, false),   // deprecated 6to4 relay anycast, 6a44 relay
    ([192, 168, 0, 0], 16, false),   // private use
    ([192, 175, 48, 0], 24, true),   // direct delegation AS112
    ([198, 18, 0, 0], 15, false),    // benchmarking
    ([198, 51, 100, 0], 24, false),  // documentation
    ([203, 0, 113, 0], 24, false),   // documentation
    ([224, 0, 0, 0], 4, false),      // multicast
    ([240, 0, 0, 0], 4, false),      // reserved, limited broadcast
];

/// Inside 2000::/3 only: everything outside it is refused before this table is asked.
const V6: &[BlockV6] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, false), // IETF protocol assignments, Teredo among them
    ([0x2001, 1, 0, 0, 0, 0, 0, 1], 128, true), // PCP anycast
    ([0x2001, 1, 0, 0, 0, 0, 0, 2], 128, true), // TURN anycast
    ([0x2001, 1, 0, 0, 0, 0, 0, 3], 128, true), // DNS-SD SRP anycast
    ([0x2001, 3, 0, 0, 0, 0, 0, 0], 32, true),  // AMT
    ([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48, true), // AS112-v6
    ([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28, true), // ORCHIDv2
    ([0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28, true), // DRIP entity tags
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, false), // documentation
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48, true), // direct delegation AS112
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, false), // documentation
];

/// Whether the most specific block that holds `address` is globally reachable; ordinary unicast is.
pub(super) fn is_global_v4(address: Ipv4Addr) -> bool {
    let bits = u32::from(address);
    let holds = |&&(network, length, _): &&BlockV4| (bits ^ u32::from_be_bytes(network)) >> (32 - length) == 0;
    V4.iter().filter(holds).max_by_key(|(_, length, _)| *length).is_none_or(|(.., global)| *global)
}

/// The same for IPv6, judged as itself: the caller looks at what it embeds first.
pub(super) fn is_global_v6(address: Ipv6Addr) -> bool {
    let bits = u128::from(address);
    if bits >> 125 != 0b001 {
        return false; // outside 2000::/3: special, reserved by the IETF, or multicast
    }
    let holds = |&&(network, length, _): &&BlockV6| (bits ^ u128::from(Ipv6Addr::from(network))) >> (128 - length) == 0;
    V6.iter().filter(holds).max_by_key(|(_, length, _)| *length).is_none_or(|(.., global)| *global)
}

/// The IPv4 address that a packet to `address` ends up at: IPv4-mapped (RFC 4291 2.5.5.2), the well-known NAT64
/// prefix 64:ff9b::/96 (RFC 6052 2.1) or 6to4 (RFC 3056 2). Other forms that embed one are refused as they are.
pub(super) fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let groups = address.segments();
    let joined = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match groups {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(joined(high, low)),
        [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}
