"""Which names and addresses are this machine."""

import socket
from ipaddress import ip_address


def is_here(name: str) -> bool:
    """Whether this is a name or an address of this machine. Nobody but a name server is asked."""
    if name in ("localhost", socket.gethostname()):
        return True
    return any(_is_own(family, address) for family, address in _addresses(name))


def _addresses(name: str) -> list[tuple[int, tuple[object, ...]]]:
    try:
        found = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return []  # nobody knows that name
    return [(family, address) for family, _, _, _, address in found]


def _is_own(family: int, address: tuple[object, ...]) -> bool:
    """What would be sent to an address of this machine would be sent from that same address."""
    if ip_address(str(address[0]).partition("%")[0]).is_loopback:
        return True
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as line:
            line.connect(address)
            return bool(line.getsockname()[0] == address[0])
    except OSError:
        return False
