//! Handing messages to relays by SMTP (RFC 5321), and judging what relays answer.
