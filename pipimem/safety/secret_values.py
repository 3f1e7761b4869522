"""Whether a value can be a secret at all: not a placeholder, a reference, code or jargon, and random enough."""

from __future__ import annotations

from pipimem.safety.views import rx

_PLACEHOLDER = (
    r"(?i)example|placeholder|change[-_]?me|redacted|dummy|x{4,}|\*{3,}|\.{3}|…|(?<![a-z])your(?:[-_ ]|[a-z]*(?:key"
    r"|token|secret|password))|(?<![a-z])(?:insert|replace|enter|paste)[-_]|[-_]here\b|^[x.*#?-]+$"
)


def is_placeholder(value: str) -> bool:
    """Whether the value only marks the place of one: your-key-here, xxxx, <example>."""
    return rx(_PLACEHOLDER).search(value, 0, 400) is not None


def looks_random(body: str) -> bool:
    """A run of 16 letters and digits with both, or a UUID: what "sk-fading-circle-2" is not."""
    return bool(
        rx(r"(?=[A-Za-z]{0,400}[0-9])(?=[0-9]{0,400}[A-Za-z])[A-Za-z0-9]{16}").search(body, 0, 400)
        or rx(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-").search(body, 0, 400)
    )


# code, variables, paths, addresses, versions, dates, amounts: what stands after such a name and is no secret
_REFERENCE = (
    r"\$[\w{(\[]|%\(\w+\)|%\{|[%@!][A-Za-z_]+\d{0,2}%?$|\{|<|\[|&#?\w|\w+=[\"']|\*\*|\\|"
    r"(?:~|\.{1,2})?/[\w.@:-]{0,20}(?:/[\w.@:-]{0,20})*$|[a-z][a-z0-9+.-]{1,20}:/|arn:|ENC\[|"
    r"(?:env|vault|op|ssm|sops|file|secretref|kms|secrets?|process|os)[:.]\S|"
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}$|"
    r"[A-Za-z_$][A-Za-z_$]*\d{0,2}(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z_$]*\d{0,2})+$|"
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|[A-Z]{2,}\d{0,3}$|"
    r"v?\d+(?:\.\d+)+[-+.\w]*$|(?:19|20)\d\d[-/.]\d{1,2}(?:[-/.]\d{1,2}|$)|\d{1,2}:\d\d|"
    r"\d[\d.,_]*-?(?:[smhdwkx]|ms|mins?|minutes?|hours?|days?|weeks?|months?|years?|chars?|characters?|bits?|bytes?"
    r"|[kmgt]i?b|times?|px|th|st|nd|rd|digits?|tokens?|words?|factor|step)$"
)
_IN_CODE = (
    r"^[\w.]+\(\)|\{\w*\}|=>|\)\.|\.(?:json|ya?ml|txt|py|md|toml|env|pem|key|[jt]sx?|go|java|sh|html|ini|cfg|conf|log"
    r"|csv)$"
)
_JARGON = frozenset(
    "rsa aes sha hmac ecdsa ecdh eddsa ed sm des hs rs es ps md pbkdf argon id scrypt bcrypt oauth oidc x utf mb base"
    " gcm cbc ctr kms jwt jws jwe saml totp hotp mfa fa password curve secp chacha poly rc blowfish tls ssl v r k p q"
    " s with enc sso ldap http https ipv iso gb pkcs prime nist fips hash hashed salted encrypted encoded protected"
    " based bit bits char chars character characters digit digits only day days factor hex int uint float string"
    " varchar step rev type version level phase stage round sprint week draft option plan no one".split()
)
_CODE_WORDS = (
    r"(?i)_(?:pass|pwd|password|secret|token|key|input|field|value|param|env|arg)|(?:password|pwd|input|field)\d{0,2}$"
)


def could_open(value: str, *, quoted: bool) -> bool:
    """Whether the value is more than a placeholder, a reference, a variable or jargon."""
    if len(value) < 6 or is_placeholder(value) or (len(set(value)) < 4 and not value.isdigit()):
        return False
    if rx(_REFERENCE).match(value) or rx(_IN_CODE).search(value) or (not quoted and rx(r"\w[(\[]").search(value)):
        return False
    if not quoted and rx(r"[A-Za-z_]\w*$").match(value) and rx(_CODE_WORDS).search(value):
        return False
    words = rx(r"[a-z]+").findall(value.lower())
    return not words or not all(word in _JARGON for word in words)


def is_password(value: str) -> bool:
    """Six characters or more: digits only (a PIN, a date of birth), a digit among others, or three classes."""
    lower, upper, digit, other = classes(value)
    if not lower and not upper:
        return (value.isdigit() and len(value) <= 16) or rx(r"[@!#$%^&*?~]").search(value) is not None
    return digit > 0 or (bool(lower) + bool(upper) + bool(other) == 3 and " " not in value)


def is_token(value: str) -> bool:
    """Eight characters or more, digits and letters (or 16 in mixed case), at least 3 bits a character or three
    classes, and no identifier made of words.
    """
    lower, upper, digit, other = classes(value)
    if len(value) < 8 or " " in value or is_wordy(value):
        return False
    mixed = (digit and (lower or upper)) or (lower and upper and (len(value) >= 16 or value[-1] == "="))
    return bool(mixed) and (_entropy(value) >= 3.0 or bool(lower) + bool(upper) + bool(digit) + bool(other) >= 3)


_FUNCTION_WORDS = frozenset(
    "the and are for was were from not you that this with have has its our your they which".split()
)


def is_seed(value: str) -> bool:
    """Whether words in a row can be a wallet's: 12 to 24, hardly one twice, and no sentence."""
    words = rx(r"[a-z]+").findall(value)
    return len(set(words)) >= 0.8 * len(words) and not _FUNCTION_WORDS & set(words)


def is_mail_code(value: str) -> bool:
    """Sixteen letters of one case: with such a code programs log in to a mailbox in China."""
    return rx(r"[a-z]{16}|[A-Z]{16}").fullmatch(value) is not None and len(set(value)) > 8


def classes(value: str) -> tuple[int, int, int, int]:
    """How many lower-case letters, capitals, digits and other characters."""
    lower = sum("a" <= char <= "z" for char in value)
    upper = sum("A" <= char <= "Z" for char in value)
    digit = sum("0" <= char <= "9" for char in value)
    return lower, upper, digit, len(value) - lower - upper - digit


def is_wordy(value: str) -> bool:
    """An identifier made of words and small numbers: app-tls-2026, accessToken2, not 9f3c1ab7d2e4."""
    if rx(r"[A-Z2-7]{16,}={0,6}").fullmatch(value) and len(rx(r"[2-7]+").findall(value)) > 1:
        return False  # base32, as second factors are seeded
    parts = rx(r"[-_.]").split(value)
    if len(parts) > 2 and 2 * sum(part.isalpha() and len(part) > 2 for part in parts) >= len(parts):
        return all(len(part) <= 4 or rx(r"[A-Za-z]+[0-9]{0,2}").fullmatch(part) for part in parts)
    words = rx(r"[A-Z]?[a-z]+|[A-Z]+").findall(value)
    if len(words) * 3.3 > len(value):  # random letters change case at every turn
        return False
    real = sum(len(word) for word in words if len(word) >= 3 and rx(r"(?i)[aeiouy]").search(word))
    return classes(value)[2] <= 4 and real > 0.7 * sum(map(len, words)) and not rx(r"[^\w.:/@#$-]").search(value)


def _entropy(value: str) -> float:
    from math import log2

    shares = [value.count(char) / len(value) for char in set(value)]
    return -sum(share * log2(share) for share in shares)
