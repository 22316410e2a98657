"""Verifies a logout token with joserfc, a JOSE library that shares no code with Postrider.

Reads one JSON object on standard input:
    token      the compact JWS
    jwks       the issuer's published key set
    issuer     the expected `iss`
    client_id  the expected `aud`
    now        the receiver's clock in seconds since the epoch; optional, the system's by default

Prints {"header", "claims", "thumbprints"} and exits 0 where the token is valid (OpenID Connect Back-Channel Logout 1.0,
section 2.6) and holds nothing that Postrider does not send; `thumbprints` are the RFC 7638 ones of the whole set, in its
order. Otherwise prints the reason on standard error and exits 1.
"""

import json
import sys
import warnings

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

EVENT = "http://schemas.openid.net/event/backchannel-logout"
# RFC 9864 calls EdDSA "Ed25519"; receivers in the field know the older name, which OpenID clients register.
warnings.filterwarnings("ignore", message="EdDSA is deprecated")
ALGORITHMS = ["ES256", "RS256", "EdDSA"]
CLAIMS = {"iss", "aud", "iat", "exp", "jti", "events", "sub", "sid"}


class Refused(Exception):
    """The token is not to be accepted."""


def require(condition, reason):
    if not condition:
        raise Refused(reason)


def check_header(header):
    require(set(header) == {"typ", "alg", "kid"}, f"header has members {sorted(header)}")
    require(header["typ"] == "logout+jwt", "typ is not logout+jwt")


def check_claims(claims, request):
    require(set(claims) <= CLAIMS, f"claims beyond those of a logout token: {sorted(set(claims) - CLAIMS)}")
    registry = jwt.JWTClaimsRegistry(
        now=request.get("now"),
        iss={"essential": True, "value": request["issuer"]},
        aud={"essential": True, "value": request["client_id"]},
        iat={"essential": True},
        exp={"essential": True},
        jti={"essential": True},
    )
    registry.validate(claims)
    require(claims["aud"] == request["client_id"], "aud names others too")
    require(type(claims["iat"]) is int and type(claims["exp"]) is int, "iat or exp is no whole number")
    require(0 < claims["exp"] - claims["iat"] <= 120, "exp is not within two minutes after iat")
    require(isinstance(claims["jti"], str) and claims["jti"], "jti is no text")
    require(claims.get("events") == {EVENT: {}}, "events is not the back-channel logout event alone")
    require("sub" in claims or "sid" in claims, "neither sub nor sid")
    for name in ("sub", "sid"):
        value = claims.get(name, "absent")
        require(isinstance(value, str) and value, f"{name} is no text")


def verify(request):
    keys = KeySet.import_key_set(request["jwks"])
    token = jwt.decode(request["token"], keys, algorithms=ALGORITHMS)
    check_header(token.header)
    kid = token.header["kid"]
    published = [key for key in request["jwks"]["keys"] if key["kid"] == kid]
    require(len(published) == 1, "kid does not name one published key")
    require(published[0]["alg"] == token.header["alg"], "alg is not that of the key")
    check_claims(token.claims, request)
    return {
        "header": token.header,
        "claims": token.claims,
        "thumbprints": [key.thumbprint() for key in keys.keys],
    }


def main():
    try:
        accepted = verify(json.load(sys.stdin))
    except (JoseError, Refused, ValueError) as error:
        print(f"refused: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)
    json.dump(accepted, sys.stdout)


if __name__ == "__main__":
    main()
