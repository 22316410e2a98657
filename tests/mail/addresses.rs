//! What is an address, what is not and why.

use postrider::mail::{AddressError, EmailAddress};
use postrider_actors::Reason;

use AddressError::{Character, Domain, LocalPart, LocalPartTooLong, Syntax, TooLong};

/// As given, and as it goes out.
const TAKEN: [(&str, &str); 27] = [
    ("a@b", "a@b"),
    ("ada@example.org", "ada@example.org"),
    ("Ada.Lovelace@Example.ORG", "Ada.Lovelace@example.org"),
    ("a.b+tag=x@example.org", "a.b+tag=x@example.org"),
    ("!#$%&'*+-/=?^_`{|}~@example.org", "!#$%&'*+-/=?^_`{|}~@example.org"),
    ("1@1.example", "1@1.example"),
    ("x@bücher.example", "x@xn--bcher-kva.example"),
    ("x@BÜCHER.example", "x@xn--bcher-kva.example"),
    ("x@xn--bcher-kva.example", "x@xn--bcher-kva.example"),
    ("x@straße.example", "x@xn--strae-oqa.example"),
    ("x@例え。テスト", "x@xn--r8jz45g.xn--zckzah"),
    ("josé@example.com", "josé@example.com"),
    // The accent as a character of its own stays one.
    ("jose\u{301}@example.com", "jose\u{301}@example.com"),
    ("用户@例え.テスト", "用户@xn--r8jz45g.xn--zckzah"),
    ("\"a b\"@example.com", "\"a b\"@example.com"),
    ("\"a@b\"@example.com", "\"a@b\"@example.com"),
    ("\"a\\\"b\\\\\"@example.com", "\"a\\\"b\\\\\"@example.com"),
    ("\"..\"@example.com", "\"..\"@example.com"),
    ("\"é è\"@example.com", "\"é è\"@example.com"),
    ("\" \"@example.com", "\" \"@example.com"),
    ("user@[IPv6:2001:db8::1]", "user@[IPv6:2001:db8::1]"),
    ("user@[ipv6:2001:DB8:0:0:0:0:0:1]", "user@[IPv6:2001:db8::1]"),
    ("user@[IPv6:::ffff:192.0.2.1]", "user@[IPv6:::ffff:192.0.2.1]"),
    ("user@[192.0.2.1]", "user@[192.0.2.1]"),
    ("user@a-b.c--d.example", "user@a-b.c--d.example"),
    ("user@localhost", "user@localhost"),
    ("user@3com.example", "user@3com.example"),
];

const REFUSED: [(&str, AddressError); 69] = [
    ("", Syntax),
    ("@", Syntax),
    ("a", Syntax),
    ("a@", Syntax),
    ("@b.example", Syntax),
    ("a@b@c.example", Syntax),
    ("a@b.example@", Syntax),
    ("@a.example,@b.example:c@d.example", Syntax),
    ("\"a\"b@c.example", Syntax),
    ("\"a@c.example", Syntax),
    ("\"a\\\"@c.example", Syntax),
    ("\"@c.example", Syntax),
    ("\"\"@c.example", LocalPart),
    (".a@b.example", LocalPart),
    ("a.@b.example", LocalPart),
    ("a..b@c.example", LocalPart),
    ("a b@c.example", LocalPart),
    (" a@c.example", LocalPart),
    ("a @c.example", LocalPart),
    ("a\u{a0}b@c.example", LocalPart),
    ("a\u{3000}b@c.example", LocalPart),
    ("\"a\u{a0}b\"@c.example", LocalPart),
    ("a\"b\"@c.example", LocalPart),
    ("a,b@c.example", LocalPart),
    ("a;b@c.example", LocalPart),
    ("a:b@c.example", LocalPart),
    ("a(b)@c.example", LocalPart),
    ("a[b]@c.example", LocalPart),
    ("a\\b@c.example", LocalPart),
    ("\"a\\é\"@c.example", LocalPart),
    ("mailto:a@c.example", LocalPart),
    ("Ada <a@c.example>", Character),
    ("<a@c.example>", Character),
    ("a<@c.example", Character),
    ("\"a<b\"@c.example", Character),
    ("a>@c.example", Character),
    ("\"a>b\"@c.example", Character),
    ("\"a\\>b\"@c.example", Character),
    ("a@c.example>", Character),
    ("v@e.x>\r\nRCPT TO:<w@e.x", Character),
    ("a\r@c.example", Character),
    ("a\n@c.example", Character),
    ("\"a\r\nb\"@c.example", Character),
    ("a@c.example\r\n", Character),
    ("a@c.example\n", Character),
    ("a\0@c.example", Character),
    ("a@c\0.example", Character),
    ("a\t@c.example", Character),
    ("\"a\tb\"@c.example", Character),
    ("a\u{7f}@c.example", Character),
    ("a\u{85}@c.example", Character),
    ("a@c\u{85}.example", Character),
    ("\"a\u{2028}\"@c.example", Character),
    ("a\u{2029}@c.example", Character),
    ("a@c.example.", Domain),
    ("a@.c.example", Domain),
    ("a@c..example", Domain),
    ("a@c example", Domain),
    ("a@c.example ", Domain),
    ("a@-c.example", Domain),
    ("a@c-.example", Domain),
    ("a@c_d.example", Domain),
    ("a@c.example:25", Domain),
    ("a@xn--a.example", Domain),
    ("a@\"c\".example", Domain),
    ("a@[IPv6:2001:db8::1", Domain),
    ("a@[IPv6:fe80::1%eth0]", Domain),
    ("a@[2001:db8::1]", Domain),
    ("a@[192.0.2.256]", Domain),
];

#[test]
fn c20_addresses_that_a_mail_system_takes() {
    for (given, sent) in TAKEN {
        let address = EmailAddress::parse(given).unwrap_or_else(|error| panic!("{given:?}: {error}"));
        assert_eq!(address.to_string(), sent, "{given:?}");
        let (local_part, domain) = sent.rsplit_once('@').unwrap();
        assert_eq!((address.local_part(), address.domain()), (local_part, domain), "{given:?}");
        assert!(address.domain().is_ascii(), "{given:?}");
        assert_eq!(EmailAddress::parse(sent).unwrap(), address, "what goes out is taken again");
    }
}

#[test]
fn c13_and_c20_what_no_mail_system_takes_is_refused_with_its_kind() {
    for (given, expected) in REFUSED {
        assert_eq!(EmailAddress::parse(given), Err(expected), "{given:?}");
    }
    assert_eq!(Reason::from(Syntax), Reason::InvalidAddress);
}

/// An address with sides of these lengths.
fn of_lengths(local_part: usize, domain: usize) -> Result<EmailAddress, AddressError> {
    let labels = "abcdefghijklmnopqrstuvwxyz0123456789.".repeat(8);
    let domain = format!("{}x", &labels[labels.len() - domain + 1..]);
    EmailAddress::parse(&format!("{}@{domain}", "l".repeat(local_part)))
}

#[test]
fn lengths_end_at_those_of_rfc_5321() {
    assert!(of_lengths(64, 20).is_ok());
    assert_eq!(of_lengths(65, 20), Err(LocalPartTooLong));
    // 32 characters of two octets each.
    assert!(EmailAddress::parse(&format!("{}@c.example", "é".repeat(32))).is_ok());
    assert_eq!(EmailAddress::parse(&format!("{}x@c.example", "é".repeat(32))), Err(LocalPartTooLong));
    let quoted = |length: usize| EmailAddress::parse(&format!("\"{}\"@c.example", "q".repeat(length)));
    assert!(quoted(62).is_ok());
    assert_eq!(quoted(63), Err(LocalPartTooLong));
    // 256 octets with the brackets.
    assert!(of_lengths(64, 189).is_ok());
    assert_eq!(of_lengths(64, 190), Err(TooLong));
    assert!(of_lengths(1, 252).is_ok());
    assert_eq!(of_lengths(1, 253), Err(TooLong));
    assert_eq!(of_lengths(1, 256), Err(TooLong));
    assert!(EmailAddress::parse(&format!("a@{}.example", "l".repeat(63))).is_ok());
    assert_eq!(EmailAddress::parse(&format!("a@{}.example", "l".repeat(64))), Err(Domain));
    // Longer as given than in A-labels, which is what counts, and the other way about.
    let japanese = |label: &str| EmailAddress::parse(&format!("a@{}", [label; 5].join(".")));
    assert_eq!(japanese(&"あ".repeat(30)).unwrap().domain().len(), 5 * 36 + 4);
    assert_eq!(japanese(&format!("{}あ", "a".repeat(48))), Err(Domain));
}

#[test]
fn only_a_local_part_beyond_ascii_needs_smtputf8() {
    let needs = |text| EmailAddress::parse(text).unwrap().needs_smtputf8();
    assert!(needs("josé@example.com"));
    assert!(needs("\"é\"@example.com"));
    assert!(!needs("x@bücher.example"));
    assert!(!needs("\"a b\"@example.com"));
    assert!(!needs("user@[IPv6:2001:db8::1]"));
}

#[test]
fn an_address_and_its_errors_show_nothing_of_it() {
    let address = EmailAddress::parse("ada@example.org").unwrap();
    assert_eq!(format!("{address:?}"), "EmailAddress");
    for (given, error) in REFUSED.iter().filter(|(given, _)| given.contains("c.example")) {
        let said = format!("{error:?} {error}");
        assert!(!said.contains("example"), "{given:?}: {said}");
    }
}
