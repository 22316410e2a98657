"""Verifies DKIM signatures with dkimpy, which shares no code with Postrider.

For each line of standard input, a JSON object, writes one line of JSON:
    message      the message in base64
    private_key  the signer's private key in PEM
    name         the name of the DNS record

The record is made here of the key by the cryptography package, and is the only one that there is. The answer:
    valid    whether the first signature verifies
    record   the record
    tags     the signature's tags, without white space
"""

import base64
import json
import sys

import dkim
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key


def record(pem):
    key = load_pem_private_key(pem.encode(), password=None)
    if isinstance(key, ed25519.Ed25519PrivateKey):
        kind, public = "ed25519", key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    else:
        kind, public = "rsa", key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"v=DKIM1; k={kind}; p={base64.b64encode(public).decode()}"


def verify(request):
    text = record(request["private_key"])
    records = {request["name"] + ".": text}
    verifier = dkim.DKIM(base64.b64decode(request["message"]))
    try:
        valid = verifier.verify(dnsfunc=lambda name, timeout=5: records.get(name.decode(), "").encode())
    except (dkim.DKIMException, ValueError) as error:
        return {"valid": False, "record": text, "tags": {}, "error": str(error)}
    tags = {name.decode(): "".join(value.decode().split()) for name, value in verifier.signature_fields.items()}
    return {"valid": valid, "record": text, "tags": tags}


def main():
    for line in sys.stdin:
        print(json.dumps(verify(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
