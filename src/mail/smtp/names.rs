//! Host names and address literals as SMTP writes them (RFC 5321 2.3.5, 4.1.3).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Labels of letters, digits and inner hyphens, 63 octets each and 253 in all (RFC 1035 2.3.1, 2.3.4).
pub(super) fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// What a client calls itself (RFC 5321 4.1.1.1): a fully qualified name or an address literal, `[192.0.2.1]` or
/// `[IPv6:2001:db8::1]`.
pub(super) fn is_client_name(name: &str) -> bool {
    let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match literal {
        Some(literal) => match literal.strip_prefix("IPv6:") {
            Some(v6) => v6.parse::<Ipv6Addr>().is_ok(),
            None => literal.parse::<Ipv4Addr>().is_ok(),
        },
        None => name.contains('.') && is_host_name(name) && name.parse::<Ipv4Addr>().is_err(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_called_by_a_qualified_name_or_a_literal() {
        for good in ["mail.example.com", "a.b", "[192.0.2.1]", "[IPv6:2001:db8::1]", "xn--bcher-kva.example"] {
            assert!(is_client_name(good), "{good}");
        }
        let long = format!("{}.example", "a".repeat(64));
        let bad = [
            "",
            "localhost",
            "a..b",
            "-a.b",
            "a-.b",
            "a_b.c",
            "a.b.",
            "192.0.2.1",
            "[192.0.2]",
            "[2001:db8::1]",
            "bücher.example",
            "a b.c",
            "a.b\r\nMAIL FROM:<x@y>",
            "a.b\n",
            "a.b\0",
            "[IPv6:::1",
            &long,
        ];
        for bad in bad {
            assert!(!is_client_name(bad), "{bad:?}");
        }
    }
}
