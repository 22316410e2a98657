"""Reads messages with Python's own e-mail package, which shares no code with Postrider.

For each line of standard input, a JSON object whose `message` is a message in base64, writes one line of JSON:
    headers   every header in its order: name and value, unfolded, encoded words decoded
    mailboxes for each address header: its mailboxes as display name and address
    date      the Date in ISO 8601
    type      the message's content type
    parts     of the message's parts: type, charset, transfer encoding, headers and content, decoded
    defects   whatever the package found wrong
"""

import base64
import email
import json
import sys
from email import policy
from email.header import decode_header, make_header
from email.utils import parseaddr

ADDRESS_HEADERS = ("from", "to", "reply-to", "cc", "bcc", "sender")


def parse(raw):
    # RFC 6532: a header that is not ASCII is UTF-8.
    if raw.isascii():
        return email.message_from_bytes(raw, policy=policy.default)
    return email.message_from_string(raw.decode("utf-8"), policy=policy.SMTPUTF8)


def defects(message):
    found = [type(defect).__name__ for part in message.walk() for defect in part.defects]
    for part in message.walk():
        for name, value in part.items():
            found += [f"{name}: {type(defect).__name__}" for defect in value.defects]
    return found


def display_name(address, raw):
    # In a phrase, the newer parser of Python 3.11 keeps the space between two encoded words and drops a second one
    # inside them (RFC 2047 6.2); the older one is right.
    name, _ = parseaddr(raw)
    return str(make_header(decode_header(name))) if "=?" in name else address.display_name


def mailboxes(header, raw):
    raw = "".join(raw.splitlines())
    return [[display_name(address, raw), address.addr_spec] for address in header.addresses]


def read_part(part):
    return {
        "type": part.get_content_type(),
        "charset": part.get_content_charset(),
        "encoding": str(part["content-transfer-encoding"]),
        "headers": [name for name, _ in part.items()],
        "content": part.get_payload(decode=True).decode("utf-8"),
    }


def read(raw):
    message = parse(raw)
    return {
        "headers": [[name, str(value)] for name, value in message.items()],
        "mailboxes": {
            name.lower(): mailboxes(value, raw)
            for (name, value), (_, raw) in zip(message.items(), message.raw_items())
            if name.lower() in ADDRESS_HEADERS
        },
        "date": message["date"].datetime.isoformat(),
        "type": message.get_content_type(),
        "parts": [read_part(part) for part in message.iter_parts()],
        "defects": defects(message),
    }


def main():
    for line in sys.stdin:
        answer = read(base64.b64decode(json.loads(line)["message"]))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
